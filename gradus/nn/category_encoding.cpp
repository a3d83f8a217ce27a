/// Quantiles are found by summaries that are merged and compressed, as in Keras's Discretization, so that boundaries
/// are the same.
#include "gradus/nn/category_encoding.h"
#include <algorithm>
#include <cmath>
#include "gradus/base/floating_point_state.h"
#include "gradus/base/ranges.h"
#include "gradus/function/variable_cell.h"
#include "gradus/nn/call_scope.h"
#include "gradus/nn/cloned.h"
#include "gradus/nn/described.h"
#include "gradus/nn/function_layer.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/sort.h"
#include "gradus/text/vocabulary_file.h"

namespace gradus {
namespace {

/// Values in ascending order, and how many numbers each stands for.
struct QuantileSummary {
  std::vector<float> values, weights;
};

QuantileSummary summary_of(std::vector<float> numbers, double epsilon) {
  std::ranges::sort(numbers);
  const double increment = static_cast<double>(numbers.size()) / (1 / epsilon), step = std::max(increment, 1.0);
  QuantileSummary summary;
  for (auto i = static_cast<std::size_t>(step - 1); i < numbers.size(); i += static_cast<std::size_t>(step)) {
    summary.values.push_back(numbers[i]);
    summary.weights.push_back(static_cast<float>(step));
  }
  return summary;
}

/// The line through (xs, ys) at x, constant past its ends.
double on_line(double x, const std::vector<float>& xs, const std::vector<float>& ys) {
  const auto next = std::ranges::upper_bound(xs, x, {}, [](float v) { return static_cast<double>(v); });
  if (next == xs.begin()) return ys.front();
  if (next == xs.end()) return ys.back();
  const auto at = static_cast<std::size_t>(next - xs.begin()) - 1;
  const double x0 = xs[at], y0 = ys[at];
  return (ys[at + 1] - y0) / (xs[at + 1] - x0) * (x - x0) + y0;
}

QuantileSummary compressed(const QuantileSummary& summary, double epsilon) {
  if (static_cast<double>(summary.values.size()) * epsilon < 1) return summary;
  std::vector<float> sums, shares;
  float sum = 0;
  for (const float weight : summary.weights) sums.push_back(sum += weight);
  for (const float each : sums) shares.push_back(each / sum);
  QuantileSummary out;
  double before = 0;
  const auto count = static_cast<std::int64_t>(std::ceil(1 / epsilon));
  for (std::int64_t i = 0; i < count; ++i) {
    const double share = epsilon + static_cast<double>(i) * epsilon, till_here = on_line(share, shares, sums);
    out.values.push_back(static_cast<float>(on_line(share, shares, summary.values)));
    out.weights.push_back(static_cast<float>(till_here - before));
    before = till_here;
  }
  return out;
}

QuantileSummary merged(const QuantileSummary& a, const QuantileSummary& b, double epsilon) {
  std::vector<std::pair<float, float>> all;
  for (const QuantileSummary* part : {&a, &b})
    for (std::size_t i = 0; i < part->values.size(); ++i) all.emplace_back(part->values[i], part->weights[i]);
  std::ranges::stable_sort(all, {}, [](const auto& entry) { return entry.first; });
  QuantileSummary out;
  for (const auto& [value, weight] : all) {
    out.values.push_back(value);
    out.weights.push_back(weight);
  }
  return compressed(out, epsilon);
}

std::vector<float> floats_of(const Tensor& x) {
  const Tensor numbers = cast(x, f32);
  const float* values = numbers.host<float>();
  const std::vector<float> all(values, values + numbers.shape().size());
  require(std::ranges::none_of(all, [](float v) { return std::isnan(v); }),
          "Discretization: adapt: the data has a NaN, which no quantile counts");
  return all;
}

/// If the data has fewer numbers than bins there are fewer boundaries than num_bins tells: a model's file keeps their
/// number, which a layer needs before it is built.
struct DiscretizationLayer final : Cloned<DiscretizationLayer>, SavedText {
  explicit DiscretizationLayer(DiscretizationOptions o) : options(std::move(o)) {}
  std::string_view kind() const override { return "discretization"; }
  void build(const Spec&) override {
    const std::int64_t count =
        options.num_bins ? found.value_or(*options.num_bins - 1) : std::ssize(options.bin_boundaries);
    const Tensor first =
        options.num_bins ? zeros({count}) : cast(from_values(options.bin_boundaries, Shape{count}), f32);
    add_variable("bin_boundaries", first, {.trainable = false});
    first_value = variable(0).cell()->read();
  }
  Tensor call(const Tensor& x) const override {
    const bool is_adapted = !options.num_bins || variable(0).cell()->read().node() != first_value.node();
    require(is_adapted || !CallScope::is_call(),
            "Discretization: it has no boundaries; call adapt(), or give bin_boundaries");
    const Tensor& boundaries = variable(0).value();
    const Tensor flat = reshape(cast(x, f32), {-1});
    const Tensor bins = reshape(searchsorted(boundaries, flat, Side::right, i64), x.shape());
    return in_mode(bins, options.output_mode, boundaries.shape()[0] + 1);
  }
  void set(const QuantileSummary& summary, const Spec& input) {
    const double share = 1 / static_cast<double>(*options.num_bins);
    std::vector<float> bounds = compressed(summary, share).values;
    bounds.pop_back();
    if (!is_built()) found = std::ssize(bounds);
    ensure_built(input);
    require(variable(0).value().shape() == Shape{std::ssize(bounds)}, "Discretization: adapt: the data gives ",
            bounds.size(), " boundaries, the layer was built for ", variable(0).value().shape()[0]);
    variable(0).assign(from_values(bounds, Shape{std::ssize(bounds)}));
  }

  void visit_texts(const std::string& path, const TextVisitor& visit) const override {
    visit(path + std::string(saved_as()), *this);
  }
  std::string_view saved_as() const override { return "boundaries.json"; }
  std::string saved_text() const override {
    const std::int64_t count = is_built() ? variable(0).shape()[0] : found.value_or(0);
    if (count == 0 || !options.num_bins || count == *options.num_bins - 1) return {};
    return text_layer_json("Discretization", {{"boundaries", count}});
  }
  bool may_be_absent() const override { return true; }  // as many as num_bins says
  Loading loading(std::string_view saved, const std::string& source) override {
    const TextLayerConfig config(saved, source, "Discretization");
    const auto count = config.get<std::int64_t>("boundaries", 0);
    require<DataError>(count > 0 && count <= std::int64_t{1} << 24, source, ": boundaries is ", count,
                       ", expected 1 to 2^24");
    if (is_built() && variable(0).shape()[0] != count)
      return {text("expected ", variable(0).shape()[0], " boundaries, the file has ", count,
                   "; read a file's number of them, by load_vocabularies(), before the model is built"),
              {}};
    return {{}, [this, count] { found = count; }};
  }

  const DiscretizationOptions options;
  std::optional<std::int64_t> found;  // boundaries of the data
  Tensor first_value;                 // as long as nothing was assigned
};

DiscretizationLayer& adaptable(Module& module) {
  auto& layer = static_cast<DiscretizationLayer&>(module.layer_behind());
  require(layer.options.num_bins.has_value(),
          "Discretization: adapt: its bin_boundaries are given; give num_bins to find them");
  return layer;
}

}  // namespace

CategoryEncoding::CategoryEncoding(std::int64_t num_tokens, CategoryEncodingOptions options)
    : Module(layer_of("category_encoding",
                      [=](const Tensor& x) {
                        require(is_integer(x.dtype()), "CategoryEncoding: the input is ", x.spec(),
                                ", expected integers");
                        return in_mode(x, options.output_mode, num_tokens);
                      },
                      {"CategoryEncoding",
                       {{"num_tokens", num_tokens}, {"output_mode", std::string(name_of(options.output_mode))}}})) {
  check_number("CategoryEncoding", "num_tokens", Allowed::positive(""), num_tokens);
  require(options.output_mode != OutputMode::ids && options.output_mode != OutputMode::tf_idf,
          "CategoryEncoding: ", "output_mode ", name_of(options.output_mode), "; expected one_hot, multi_hot or count");
}

Tensor CategoryEncoding::operator()(const Tensor& x, const Tensor& count_weights) const {
  const auto& config = dynamic_cast<const Described&>(layer_behind()).config();
  require(std::get<std::string>(config.options[1].value) == name_of(OutputMode::count),
          "CategoryEncoding: count_weights ", "are for output_mode count");
  require(x.shape() == count_weights.shape() && x.shape().rank() > 0, "CategoryEncoding: the input is ", x.spec(),
          ", count_weights are ", count_weights.spec(), "; expected one weight for each number");
  const Tensor rows = one_hot(x, std::get<std::int64_t>(config.options[0].value));
  return reduce_sum(rows * expand_dims(cast(count_weights, f32), -1), {.axis = {-2}});
}

Discretization::Discretization(DiscretizationOptions options)
    : Module(std::make_shared<DiscretizationLayer>(checked_options("Discretization", options))) {
  require(options.num_bins.has_value() != !options.bin_boundaries.empty(), "Discretization: expected one of ",
          "bin_boundaries and num_bins");
  require(std::ranges::is_sorted(options.bin_boundaries), "Discretization: bin_boundaries do not ascend");
  require(options.output_mode != OutputMode::tf_idf, "Discretization: output_mode tf_idf is for lookups");
}

void Discretization::adapt(const Tensor& x) {
  const HostFloats floats;
  DiscretizationLayer& layer = adaptable(*this);
  require<DataError>(x.shape().size() > 0, "Discretization: adapt: the data is empty");
  const double epsilon = layer.options.epsilon;
  layer.set(merged(summary_of(floats_of(x), epsilon), {}, epsilon), x.spec());
}

void Discretization::adapt_to(const Pipeline& dataset) {
  const HostFloats floats;
  DiscretizationLayer& layer = adaptable(*this);
  require(!dataset.is_endless(),
          "Discretization: adapt: the data set has no end; .take(n) says how much of it is read");
  const double epsilon = layer.options.epsilon;
  QuantileSummary summary;
  for (const auto reading = dataset.epoch(0).begin(); !reading->at_end(); reading->advance())
    summary = merged(summary_of(floats_of(reading->element()[0]), epsilon), summary, epsilon);
  require<DataError>(!summary.values.empty(), "Discretization: adapt: the data set is empty");
  layer.set(summary, dataset.specs()[0]);
}

}  // namespace gradus
