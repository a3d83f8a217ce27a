/// Traced functions whose arguments and results have no C++ types.
///
///   erased::TracedFunction f({.name = "f"}, nullptr, 0);
///   const erased::Called y = f.call(tensors, {.values = "relu 3"}, [&](erased::In in) -> erased::Called {
///     return {.tensors = body(in)};
///   });
///
/// All that decides about the trace besides the tensors is spelt into `values`: numbers, options, the structure of the
/// arguments, the identities of objects. The body runs if the key is new, when sizes that have varied become open, and
/// when the call is within another trace or under a tape. Its structure is kept with the program and given again with
/// every call.
#pragma once
#include "gradus/function/traced_function.h"

namespace gradus::erased {

/// A function: it finds or makes the program of a call. Calls may come from several threads.
using gradus::detail::TracedFunction;
/// Its options, as of function().
using gradus::FunctionOptions;
/// The user's function on given tensors.
using gradus::detail::Body;
/// The results of a call: tensors, and a structure of any kind around them.
using gradus::detail::Called;
/// All that a call's arguments are besides tensors.
using gradus::detail::StaticArguments;

}  // namespace gradus::erased
