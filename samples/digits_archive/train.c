/* Trains the digits network of an archive, without Python and without PyTorch.
 *
 *     train ARCHIVE DATA STEPS [STATE]
 *
 * export.py makes the archive. DATA is a folder of samples/digits. Prints the loss of each step, then how many of the test images
 * the network names correctly, and writes the trained state to the file STATE. LTC_BACKEND chooses the plugin. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ltc/runtime.h"

static void check(ltcr_error* error) {
  if (!error) return;
  fprintf(stderr, "train: %s\n", ltcr_error_message(error));
  ltcr_error_destroy(error);
  exit(1);
}

/* The bytes behind the header of an IDX file of so many dimensions, and how many items they are. */
static unsigned char* read_idx(const char* folder, const char* name, size_t dimensions, size_t* count) {
  char path[4096];
  snprintf(path, sizeof path, "%s/digits-%s", folder, name);
  FILE* file = fopen(path, "rb");
  unsigned char header[16];
  const size_t header_bytes = 4 + 4 * dimensions;
  if (!file || fread(header, 1, header_bytes, file) != header_bytes) {
    fprintf(stderr, "train: %s cannot be read\n", path);
    exit(1);
  }
  size_t bytes = 1;
  for (size_t i = 0; i < dimensions; ++i) {
    const unsigned char* size = header + 4 + 4 * i;
    bytes *= (size_t)size[0] << 24 | (size_t)size[1] << 16 | (size_t)size[2] << 8 | size[3];
  }
  *count = (size_t)header[4] << 24 | (size_t)header[5] << 16 | (size_t)header[6] << 8 | header[7];
  unsigned char* data = malloc(bytes);
  if (!data || fread(data, 1, bytes, file) != bytes) {
    fprintf(stderr, "train: %s is shorter than its header says\n", path);
    exit(1);
  }
  fclose(file);
  return data;
}

static ltcr_tensor tensor_of(const ltcr_tensor_info* info, void* data) {
  const ltcr_tensor tensor = {info->dtype, info->rank, info->sizes, data, info->size_bytes};
  return tensor;
}

int main(int argc, char** argv) {
  if (argc < 4 || argc > 5) {
    fprintf(stderr, "usage: %s ARCHIVE DATA STEPS [STATE]\n", argv[0]);
    return 2;
  }
  ltcr_model* model = NULL;
  ltcr_session* session = NULL;
  size_t train = 0, predict = 0;
  check(ltcr_model_load(argv[1], NULL, &model));
  check(ltcr_session_create(model, &session));
  check(ltcr_find_function(model, "train", &train));
  check(ltcr_find_function(model, "predict", &predict));

  size_t count = 0;
  unsigned char* images = read_idx(argv[2], "train-images-idx3-ubyte", 3, &count);
  unsigned char* labels = read_idx(argv[2], "train-labels-idx1-ubyte", 1, &count);
  const ltcr_tensor_info* batch = ltcr_input(model, train, 0);
  const size_t batch_size = (size_t)batch->sizes[0], image_bytes = batch->size_bytes / batch_size;
  for (int step = 0; step < atoi(argv[3]); ++step) {
    const size_t first = (size_t)step % (count / batch_size) * batch_size;
    float loss = 0;
    const ltcr_tensor inputs[] = {tensor_of(batch, images + first * image_bytes),
                                  tensor_of(ltcr_input(model, train, 1), labels + first)};
    const ltcr_tensor result = tensor_of(ltcr_result(model, train, 0), &loss);
    check(ltcr_session_run(session, train, inputs, 2, &result, 1));
    printf("step %d loss %.9g\n", step, loss);
  }

  unsigned char* test_images = read_idx(argv[2], "test-images-idx3-ubyte", 3, &count);
  unsigned char* test_labels = read_idx(argv[2], "test-labels-idx1-ubyte", 1, &count);
  const size_t test_batch = (size_t)ltcr_input(model, predict, 0)->sizes[0];
  int64_t* digits = malloc(ltcr_result(model, predict, 0)->size_bytes);
  size_t right = 0, seen = 0;
  for (; seen + test_batch <= count; seen += test_batch) {
    const ltcr_tensor input = tensor_of(ltcr_input(model, predict, 0), test_images + seen * image_bytes);
    const ltcr_tensor result = tensor_of(ltcr_result(model, predict, 0), digits);
    check(ltcr_session_run(session, predict, &input, 1, &result, 1));
    for (size_t i = 0; i < test_batch; ++i) right += digits[i] == test_labels[seen + i];
  }
  printf("%zu of %zu test images are right\n", right, seen);
  if (argc == 5) check(ltcr_session_save(session, argv[4]));

  free(digits), free(images), free(labels), free(test_images), free(test_labels);
  ltcr_session_destroy(session);
  ltcr_model_destroy(model);
  return 0;
}
