// Generates tokens with a language model of an archive, each the likeliest next one.
//
//     generate ARCHIVE COUNT TOKEN...
//
// Prints COUNT tokens that follow the prompt TOKEN... LTC_BACKEND chooses the plugin.
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "ltc/runtime.hpp"

namespace {

using ltc::runtime::Model;
using ltc::runtime::Session;
using ltc::runtime::tensor;

class Generator {
 public:
  explicit Generator(const Model& model)
      : model_(model), session_(model), prefill_(model.function("prefill")), decode_(model.function("decode")) {}

  // Begins anew with a prompt. Returns the next token.
  int64_t begin(std::vector<int64_t> prompt) {
    position_ = static_cast<int64_t>(prompt.size());
    const ltcr_tensor_info& tokens = model_.input(prefill_, 0);
    if (prompt.empty() || position_ > tokens.sizes[1])
      throw std::runtime_error("a prompt has from 1 to " + std::to_string(tokens.sizes[1]) + " tokens");
    prompt.resize(static_cast<size_t>(tokens.sizes[1]));  // with padding, which the function does not look at
    return run(prefill_, prompt.data(), position_);
  }

  // Takes the last token. Returns the next one.
  int64_t next(int64_t token) {
    const int64_t next = run(decode_, &token, position_);
    ++position_;
    return next;
  }

 private:
  int64_t run(size_t function, int64_t* tokens, int64_t number) {
    int64_t next = 0;
    session_.run(function, {tensor(model_.input(function, 0), tokens), tensor(model_.input(function, 1), &number)},
                 {tensor(model_.result(function, 0), &next)});
    return next;
  }

  const Model& model_;
  Session session_;
  const size_t prefill_, decode_;
  int64_t position_ = 0;  // of the next token
};

void run(const std::string& archive, int count, const std::vector<int64_t>& prompt) {
  const Model model(archive);
  Generator generator(model);
  int64_t token = 0;
  for (int i = 0; i < count; ++i) {
    token = i == 0 ? generator.begin(prompt) : generator.next(token);
    std::cout << token << (i + 1 < count ? " " : "\n") << std::flush;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "usage: " << argv[0] << " ARCHIVE COUNT TOKEN...\n";
    return 2;
  }
  try {
    std::vector<int64_t> prompt;
    for (int i = 3; i < argc; ++i) prompt.push_back(std::stoll(argv[i]));
    run(argv[1], std::stoi(argv[2]), prompt);
  } catch (const std::exception& error) {
    std::cerr << "generate: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
