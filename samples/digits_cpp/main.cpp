// Trains the network of the classic MNIST example on handwritten digits, on device ltc or on the CPU, without Python.
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "adadelta.h"
#include "core/torch/ltc.h"
#include "idx.h"

namespace {

namespace F = torch::nn::functional;

constexpr int64_t kBatch = 64;
constexpr int64_t kTestBatch = 1000;
constexpr double kLearningRate = 1.0;
constexpr double kGamma = 0.9;

constexpr const char* kUsage = "usage: digits --data DIR [--device ltc|cpu] [--epochs N] [--seed N]";

struct Options {
  std::string device = "ltc";
  std::string data;
  int epochs = 20;
  uint64_t seed = 1;
};

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Options parse(const std::vector<std::string>& arguments) {
  Options options;
  if (arguments.size() % 2) throw UsageError("a flag lacks its value");
  for (size_t i = 0; i < arguments.size(); i += 2) {
    const std::string &flag = arguments[i], &value = arguments[i + 1];
    try {
      if (flag == "--device" && (value == "ltc" || value == "cpu"))
        options.device = value;
      else if (flag == "--data")
        options.data = value;
      else if (flag == "--epochs")
        options.epochs = std::stoi(value);
      else if (flag == "--seed")
        options.seed = std::stoull(value);
      else
        throw UsageError("not understood: " + flag + " " + value);
    } catch (const std::logic_error&) {
      throw UsageError("not a number: " + flag + " " + value);
    }
  }
  if (options.data.empty()) throw UsageError("--data is missing");
  return options;
}

// Log-probabilities of the ten digits for images of 1 x 28 x 28.
struct NetImpl : torch::nn::Module {
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
  torch::nn::Dropout dropout1{nullptr}, dropout2{nullptr};
  torch::nn::Linear fc1{nullptr}, fc2{nullptr};

  NetImpl() {
    conv1 = register_module("conv1", torch::nn::Conv2d(1, 32, 3));
    conv2 = register_module("conv2", torch::nn::Conv2d(32, 64, 3));
    dropout1 = register_module("dropout1", torch::nn::Dropout(0.25));
    dropout2 = register_module("dropout2", torch::nn::Dropout(0.5));
    fc1 = register_module("fc1", torch::nn::Linear(9216, 128));
    fc2 = register_module("fc2", torch::nn::Linear(128, 10));
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(conv1(x));
    x = torch::relu(conv2(x));
    x = dropout1(torch::max_pool2d(x, 2));
    x = torch::relu(fc1(torch::flatten(x, 1)));
    return torch::log_softmax(fc2(dropout2(x)), 1);
  }
};
TORCH_MODULE(Net);

// Images as the network wants them, N x 1 x 28 x 28 and normalised.
idx::Data load(const std::string& folder, idx::Split split) {
  idx::Data data = idx::load(folder, split);
  torch::Tensor images = data.images.unsqueeze(1).to(torch::kFloat32) / 255;
  if (images.size(2) != 28 || images.size(3) != 28) {
    const std::vector<int64_t> size = {28, 28};
    images = F::interpolate(images, F::InterpolateFuncOptions().size(size).mode(torch::kBilinear).align_corners(false));
  }
  return {(images - 0.1307) / 0.3081, data.labels};
}

class Training {
 public:
  Training(const Options& options, torch::Device device)
      : device_(device), shuffle_(at::make_generator<at::CPUGeneratorImpl>(options.seed)) {
    torch::manual_seed(options.seed);
    net_->to(device_);
    optimizer_ = std::make_unique<Adadelta>(net_->parameters(), kLearningRate);
  }

  // One epoch over batches of one size, images left over unused; returns the mean loss. Only reading it waits for the device.
  double epoch(const idx::Data& data) {
    const int64_t steps = data.images.size(0) / kBatch;
    const torch::Tensor order = torch::randperm(data.images.size(0), shuffle_, torch::kInt64);
    const torch::Tensor total = torch::zeros({}).to(device_);
    net_->train();
    for (int64_t i = 0; i < steps; ++i) {
      const torch::Tensor chosen = order.narrow(0, i * kBatch, kBatch);
      total.add_(step(data.images.index_select(0, chosen), data.labels.index_select(0, chosen)));
      mark_step();
    }
    optimizer_->lr *= kGamma;
    return total.item<double>() / static_cast<double>(steps);
  }

  // Percentage of the images that the network names correctly.
  double accuracy(const idx::Data& data) {
    torch::NoGradGuard no_grad;
    const torch::Tensor correct = torch::zeros({}, torch::kInt64).to(device_);
    const auto images = data.images.split(kTestBatch), labels = data.labels.split(kTestBatch);
    net_->eval();
    for (size_t i = 0; i < images.size(); ++i) {
      correct.add_(net_(images[i].to(device_)).argmax(1).eq(labels[i].to(device_)).sum());
      mark_step();
    }
    return 100.0 * correct.item<double>() / static_cast<double>(data.images.size(0));
  }

 private:
  torch::Tensor step(const torch::Tensor& images, const torch::Tensor& labels) {
    optimizer_->zero_grad();
    const torch::Tensor loss = torch::nll_loss(net_(images.to(device_)), labels.to(device_));
    loss.backward();
    optimizer_->step();
    return loss.detach();
  }

  void mark_step() const {
    if (!device_.is_cpu()) ltc::mark_step();
  }

  torch::Device device_;
  torch::Generator shuffle_;  // of the CPU: every device sees the same batches
  Net net_;
  std::unique_ptr<Adadelta> optimizer_;
};

// How often graphs were compiled and found again, and which ops ran outside the plugin.
void print_counters() {
  std::printf("compiles %lld, cache hits %lld\nfallbacks", static_cast<long long>(ltc::counter_value("UncachedCompile")),
              static_cast<long long>(ltc::counter_value("CachedCompile")));
  bool none = true;
  for (const std::string& name : ltc::counter_names()) {
    const long long count = ltc::counter_value(name);
    if (!name.starts_with("aten::") || count == 0) continue;
    std::printf("%s %s %lld", none ? "" : ",", name.c_str(), count);
    none = false;
  }
  std::printf(none ? " none\n" : "\n");
}

void run(const Options& options) {
  const bool lazy = options.device == "ltc";
  if (lazy) ltc::register_device();
  const idx::Data train = load(options.data, idx::Split::kTrain), test = load(options.data, idx::Split::kTest);
  if (train.images.size(0) < kBatch) {
    throw idx::DataError(options.data + ": " + std::to_string(train.images.size(0)) +
                         " training images do not fill one batch of " + std::to_string(kBatch));
  }
  Training training(options, torch::Device(options.device));
  const auto start = std::chrono::steady_clock::now();
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    const double loss = training.epoch(train);
    std::fprintf(stderr, "epoch %d/%d  loss %.4f  test accuracy %.1f %%\n", epoch, options.epochs, loss, training.accuracy(test));
  }
  const double accuracy = training.accuracy(test);
  std::printf("%.1f s\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  if (lazy) print_counters();
  std::printf("test accuracy %.1f %%\n", accuracy);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse({argv + 1, argv + argc}));
    return 0;
  } catch (const UsageError& error) {
    std::fprintf(stderr, "error: %s\n%s\n", error.what(), kUsage);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
