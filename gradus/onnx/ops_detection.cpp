/// ONNX's choice of boxes: greedy, on the host, since how many there are depends on data.
#include <algorithm>
#include <limits>
#include "gradus/onnx/row.h"
#include "gradus/ops/constant.h"

namespace gradus::onnx {
namespace {

/// Corners in order: low <= high.
struct Box {
  double low_y, low_x, high_y, high_x;
  double area() const { return (high_y - low_y) * (high_x - low_x); }
};

Box box_of(const double* numbers, bool center) {
  if (center)  // [x, y, width, height] around the center
    return {numbers[1] - numbers[3] / 2, numbers[0] - numbers[2] / 2, numbers[1] + numbers[3] / 2,
            numbers[0] + numbers[2] / 2};
  return {std::min(numbers[0], numbers[2]), std::min(numbers[1], numbers[3]), std::max(numbers[0], numbers[2]),
          std::max(numbers[1], numbers[3])};
}

/// The common area of two boxes divided by the area of both together.
double overlap(const Box& a, const Box& b) {
  const double height = std::min(a.high_y, b.high_y) - std::max(a.low_y, b.low_y);
  const double width = std::min(a.high_x, b.high_x) - std::max(a.low_x, b.low_x);
  const double common = std::max(height, 0.0) * std::max(width, 0.0), all = a.area() + b.area() - common;
  return all > 0 ? common / all : 0;
}

/// Indices of boxes by falling score, without those that overlap one chosen before.
std::vector<std::int64_t> chosen(const std::vector<Box>& boxes, const double* scores, std::int64_t most,
                                 double iou_threshold, double score_threshold) {
  std::vector<std::int64_t> order, kept;
  for (std::size_t i = 0; i < boxes.size(); ++i)
    if (scores[i] > score_threshold) order.push_back(static_cast<std::int64_t>(i));
  std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) { return scores[a] > scores[b]; });
  for (const std::int64_t candidate : order) {
    if (static_cast<std::int64_t>(kept.size()) >= most) break;
    const Box& box = boxes[static_cast<std::size_t>(candidate)];
    if (std::ranges::none_of(
            kept, [&](std::int64_t k) { return overlap(box, boxes[static_cast<std::size_t>(k)]) > iou_threshold; }))
      kept.push_back(candidate);
  }
  return kept;
}

/// boxes [batch, n, 4], scores [batch, classes, n] -> i64 [found, 3] of batch, class, box.
Tensor non_max_suppression(const Call& c) {
  const Shape &boxes = c[0].shape(), &scores = c[1].shape();
  c.require(boxes.rank() == 3 && boxes[2] == 4 && scores.rank() == 3 && boxes[0] == scores[0] && boxes[1] == scores[2],
            "boxes are ", c[0].spec(), ", scores ", c[1].spec(), "; expected [batch, n, 4] and [batch, classes, n]");
  const std::int64_t most = c.has(2) ? c.integer_of(2) : 0, n = boxes[1];
  const double iou_threshold = c.has(3) ? c.number_of(3) : 0;
  const double score_threshold = c.has(4) ? c.number_of(4) : -std::numeric_limits<double>::infinity();
  const bool center = c.flag("center_point_box");
  const std::vector<double> corners = c.numbers_of(0), values = c.numbers_of(1);
  std::vector<std::int64_t> found;
  for (std::int64_t batch = 0; batch < boxes[0]; ++batch) {
    std::vector<Box> of_batch;
    for (std::int64_t i = 0; i < n; ++i)
      of_batch.push_back(box_of(&corners[static_cast<std::size_t>((batch * n + i) * 4)], center));
    for (std::int64_t label = 0; label < scores[1]; ++label)
      for (const std::int64_t box :
           chosen(of_batch, values.data() + (batch * scores[1] + label) * n, most, iou_threshold, score_threshold))
        found.insert(found.end(), {batch, label, box});
  }
  return from_values(found, {static_cast<std::int64_t>(found.size() / 3), 3});
}

const Table detection{
    {"NonMaxSuppression", {10, 11}, non_max_suppression, "", false, {2, 3, 4}},
};

}  // namespace
}  // namespace gradus::onnx
