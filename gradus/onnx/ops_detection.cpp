/// ONNX's non-maximum suppression: greedy, on the host, since the number of boxes depends on data.
#include <limits>
#include "gradus/graph/context.h"
#include "gradus/onnx/row.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/grid_sample.h"

namespace gradus::onnx {
namespace {

/// boxes [batch, n, 4], scores [batch, classes, n] -> i64 [found, 3] of batch, class, box.
Tensor non_max_suppression(const Call& c) {
  const Shape &boxes = c[0].shape(), &scores = c[1].shape();
  c.require(boxes.rank() == 3 && boxes[2] == 4 && scores.rank() == 3 && boxes[0] == scores[0] && boxes[1] == scores[2],
            "boxes are ", c[0].spec(), ", scores ", c[1].spec(), "; expected [batch, n, 4] and [batch, classes, n]");
  const NonMaxSuppressionOptions options{
      .max_output_size = c.has(2) ? c.integer_of(2) : 0,
      .iou_threshold = c.has(3) ? c.number_of(3) : 0,
      .score_threshold = c.has(4) ? c.number_of(4) : -std::numeric_limits<double>::infinity(),
      .center_point_box = c.flag("center_point_box")};
  const Untraced outside;
  return gradus::non_max_suppression(from_values(c.numbers_of(0), boxes), from_values(c.numbers_of(1), scores),
                                     options);
}

const Table detection_table{
    {"NonMaxSuppression", {10, 11}, non_max_suppression, "", false, {2, 3, 4}},
};

}  // namespace
}  // namespace gradus::onnx
