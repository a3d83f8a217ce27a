/// The op behind extent(): a dimension as a number of `dtype`.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/op.h"

namespace gradus {

AnyOp extent_op(std::int64_t dimension, DType dtype);

}  // namespace gradus
