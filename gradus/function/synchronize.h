/// Synchronization: waiting until pending work is done.
#pragma once

namespace gradus {

/// Computes all that is pending, on every thread. Throws the error of the first failing computation.
void synchronize();

}  // namespace gradus
