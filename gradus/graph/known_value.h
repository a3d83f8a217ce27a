/// Values that are known while a function is traced: those that follow from constants alone.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// True if the value of `x` can be observed now: outside of traces always; within a trace if it follows from constants
/// and other known values alone, and neither from an argument, a Variable or a random key, nor from a size that varies
/// or from the shards of a batch.
bool is_known(const Tensor& x);

/// Computes the value of a node of a trace outside of it, if it is known, and keeps it there. The program that is
/// traced stays as it is. False if it is not known.
bool compute_known(Node& node);

}  // namespace gradus
