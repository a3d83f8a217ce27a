/// Training mode: dynamically scoped, per thread. A call that says nothing takes the enclosing mode, else inference. It
/// is part of a function's signature.
#pragma once

namespace gradus {

struct training_t {};
inline constexpr training_t training{};  // dropout on, batch statistics
struct inference_t {};
inline constexpr inference_t inference{};

/// The mode here, for layers of one's own.
bool is_training();

enum class CallMode { unsaid, inference, training };
CallMode current_mode();

/// Sets the mode for its lifetime.
class ModeScope {
 public:
  [[nodiscard]] explicit ModeScope(CallMode mode);
  ~ModeScope();
  ModeScope(const ModeScope&) = delete;

 private:
  CallMode outer_;
};

}  // namespace gradus
