/// Synchronization: waiting until pending work is done.
#pragma once

namespace gradus {

/// Computes all that is pending, on every thread. Throws what the first failing computation throws.
void synchronize();

}  // namespace gradus
