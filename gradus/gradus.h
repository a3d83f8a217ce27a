/// Gradus: gradients and compiled training steps. The one include of users, one namespace; each header below is one
/// subject and says what it offers.
///
/// Four habits hold everywhere:
///   1. Values. Tensors are immutable handles; models, optimizers and datasets copy deeply and clean up after
///      themselves. `Dense : Module` and `Adam : Optimizer` add constructors and nothing else, so passing by base is
///      safe.
///   2. What is required is positional and has no default; what is optional is one struct of named fields, last.
///   3. Losses and gradients carry (sum, weight). A step does each of these once, in this order: gradients are divided
///   by
///      the joint weight, clipped, decayed, applied.
///   4. A mistake is a compile error where the types can tell, else an Error that names the op, the argument, what was
///      expected and what was given.
#pragma once
#include <chrono>
#include <iostream>

#include "gradus/backend/instruction_set.h"
#include "gradus/base/error.h"
#include "gradus/base/print.h"
#include "gradus/base/threads.h"
#include "gradus/data/dataset.h"
#include "gradus/formats/npy.h"
#include "gradus/function/function.h"
#include "gradus/function/mode.h"
#include "gradus/function/synchronize.h"
#include "gradus/function/variable.h"
#include "gradus/gradients/batches.h"
#include "gradus/gradients/custom_gradient.h"
#include "gradus/gradients/functional.h"
#include "gradus/gradients/gradients.h"
#include "gradus/gradients/loss.h"
#include "gradus/gradients/micro_batches.h"
#include "gradus/gradients/per_example.h"
#include "gradus/gradients/tape.h"
#include "gradus/graph/graph.h"
#include "gradus/graph/scope.h"
#include "gradus/graph/tensor.h"
#include "gradus/nn/attention.h"
#include "gradus/nn/convolutions.h"
#include "gradus/nn/embedding.h"
#include "gradus/nn/initializers.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/metrics.h"
#include "gradus/nn/model.h"
#include "gradus/nn/module.h"
#include "gradus/nn/noise.h"
#include "gradus/nn/normalization.h"
#include "gradus/nn/pools.h"
#include "gradus/nn/rearranging.h"
#include "gradus/nn/recurrent.h"
#include "gradus/onnx/export.h"
#include "gradus/onnx/model.h"
#include "gradus/ops/attention.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/conv.h"
#include "gradus/ops/deform_conv.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/grid_sample.h"
#include "gradus/ops/index.h"
#include "gradus/ops/linear_attention.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/normalization.h"
#include "gradus/ops/pool.h"
#include "gradus/ops/random.h"
#include "gradus/ops/random_key.h"
#include "gradus/ops/recurrent.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/resize.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/signal.h"
#include "gradus/ops/softmax.h"
#include "gradus/optim/optimizers.h"
#include "gradus/optim/schedule.h"
#include "gradus/tensor/device.h"
#include "gradus/tensor/memory.h"
#include "gradus/train/fit.h"
#include "gradus/train/weights.h"
