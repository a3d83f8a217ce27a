/// Training mode: dynamically scoped, for each thread. A call without a mode takes that of the call around it, or else
/// inference. The mode is part of a function's signature.
#pragma once
#include "gradus/graph/call_context.h"

namespace gradus {

/// The type of training.
struct training_t {};
/// The mode of training: dropout drops, normalization takes the statistics of the batch.
inline constexpr training_t training{};
/// The type of inference.
struct inference_t {};
/// The mode of inference: dropout passes everything, normalization takes its moving statistics.
inline constexpr inference_t inference{};

/// The mode of a call; unsaid: the call sets none.
enum class CallMode { unsaid, inference, training };
/// The mode that the calls around this one have set.
inline CallMode current_mode() { return detail::CallContext::here().mode; }
/// True if the mode here is training; for layers that a user writes.
inline bool is_training() { return current_mode() == CallMode::training; }

/// Sets the mode for its lifetime.
using ModeScope = detail::FieldScope<&detail::CallContext::mode>;

}  // namespace gradus
