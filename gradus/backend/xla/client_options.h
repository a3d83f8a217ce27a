/// Options that plugins receive when they begin, as from JAX.
#pragma once
#include "gradus/backend/xla/pjrt.h"

namespace gradus::xla {

/// Unavailable if loading would be of no use. Loads the libraries that the plugin at `path` looks up by name, if they
/// are installed beside it: those of NVIDIA's packages.
void before_loading(const std::string& name, const std::string& path);

/// A client. Memory of GPUs grows on demand; XLA_PYTHON_CLIENT_PREALLOCATE, XLA_PYTHON_CLIENT_ALLOCATOR and
/// XLA_CLIENT_MEM_FRACTION say otherwise, as for JAX.
std::unique_ptr<const pjrt::Session> make_session(const pjrt::Plugin& plugin);

/// How many threads a client has that computes on the processor.
int threads_of_client();

/// Options of all compilations.
std::vector<pjrt::Option> compilation_flags(const std::string& path);

}  // namespace gradus::xla
