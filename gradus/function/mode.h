/// Training mode: dynamically scoped, per thread. A call that says nothing takes the enclosing mode, else inference. It
/// is part of a function's signature.
#pragma once
#include "gradus/graph/call_context.h"

namespace gradus {

struct training_t {};
inline constexpr training_t training{};  // dropout on, batch statistics
struct inference_t {};
inline constexpr inference_t inference{};

enum class CallMode { unsaid, inference, training };
inline CallMode current_mode() { return CallContext::here().mode; }
/// The mode here, for layers of one's own.
inline bool is_training() { return current_mode() == CallMode::training; }

/// Sets the mode for its lifetime.
using ModeScope = FieldScope<&CallContext::mode>;

}  // namespace gradus
