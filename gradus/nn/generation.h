/// Generation of sequences of tokens by a model that predicts the next one.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/nn/module.h"

namespace gradus {

/// The choice of a token by its logits.
struct TokenChoice {
  double temperature = 1;  // logits are divided by it; 0: always the likeliest token
  std::int64_t top_k = 0;  // number of likeliest tokens to choose from; 0: all
  double top_p = 1;        // among the likeliest tokens that together have this probability (nucleus sampling)
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("temperature"), Allowed::not_negative("top_k"), Allowed::share("top_p")};
  }
};
/// Draws a token for each row: floats [..., vocabulary] -> i32 [...]. The next key after set_seed is taken.
Tensor choose_token(const Tensor& logits, TokenChoice choice = {});

/// Options of generate.
struct GenerateOptions {
  std::int64_t max_tokens = 100;           // new tokens of each sequence, at most
  double temperature = 1;                  // as in TokenChoice
  std::int64_t top_k = 0;                  // as in TokenChoice
  double top_p = 1;                        // as in TokenChoice
  std::vector<std::int32_t> stop = {};     // a sequence ends with the first of these tokens
  std::optional<std::uint64_t> seed = {};  // fixed seed; none: the next keys after set_seed
  Tensor prompt_lengths = {};              // i32 [batch]: tokens of each prompt, which are its first ones; empty: all
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("max_tokens"), Allowed::not_negative("temperature"),
                      Allowed::not_negative("top_k"), Allowed::share("top_p"), Allowed::any("stop seed")};
  }
};
/// Sequences of tokens.
struct Generated {
  Tensor tokens;   // i32 [batch, time]: each prompt and its new tokens, then zeros
  Tensor lengths;  // i32 [batch]
};

/// Generates with one model. Later calls use the programs and the memory of the first: for many prompts of few lengths.
class Generator {
 public:
  /// For `batch` sequences of at most `max_length` tokens, prompts included. The model is kept by reference.
  Generator(const Module& model, std::int64_t batch, std::int64_t max_length);
  Generator(const Module&& model, std::int64_t batch,
            std::int64_t max_length) = delete;  // keep it in a variable
  ~Generator();
  Generator(Generator&&) noexcept;
  /// Continues the prompts, i32 [batch, time >= 1], token by token. `visit`, if given, receives the tokens of each
  /// step, i32 [batch], before the next one is made; ignore those of a sequence that has ended.
  Generated operator()(const Tensor& prompt, GenerateOptions options = {},
                       const std::function<void(const Tensor&)>& visit = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Continues prompts: i32 [batch, time >= 1]. `model` gives the logits of the next token for each place: i32 [batch,
/// time] -> floats [batch, time, vocabulary]. Keys and values of earlier places are kept (call_with_cache), so a token
/// costs one row of work. A trial on a few tokens first checks that the model gives the same results this way.
///
/// InvalidArgument if the model cannot be called this way, or the trial gives other results; OutOfRange past the places
/// of a PositionEmbedding.
Generated generate(const Module& model, const Tensor& prompt, GenerateOptions options = {});

}  // namespace gradus
