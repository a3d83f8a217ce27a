/// gradus_bench ops: reads requests of bench/ops.py, one JSON line each, and answers each with a line: the rows, or the
/// time of one of them at one size, by value or gradient, op by op or inside a function.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <optional>
#include "bench/ops/row.h"
#include "bench/workloads.h"
#include "gradus/backend/cpu/thread_rates.h"
#include "gradus/base/error.h"
#include "gradus/base/rooms.h"
#include "gradus/function/traced_function.h"
#include "gradus/gradients/tape.h"
#include "gradus/ops/elementwise.h"
#include "gradus/profile/machine_rates.h"

namespace gradus::bench {
namespace {

using Json = nlohmann::ordered_json;

/// Seconds of a call, after as much time without a look at the clock.
struct CallTimes {
  double median = 0, least = 0;
};

CallTimes times_of(const std::function<void()>& call, double seconds) {
  constexpr double worth_a_sample = 50e-6, slow = 0.2;
  double last = 0;
  int calls = 0;
  for (const double start = seconds_now(); calls < 3 || seconds_now() - start < seconds; ++calls) {
    const double before = seconds_now();
    call();
    last = seconds_now() - before;
    if (calls > 0 && last > slow) break;
  }
  const int repeats = std::max(1, static_cast<int>(worth_a_sample / std::max(last, 1e-8)));
  std::vector<double> samples;
  for (const double start = seconds_now();
       samples.empty() || (last < slow && samples.size() < 3) || seconds_now() - start < seconds;) {
    const double before = seconds_now();
    for (int i = 0; i < repeats; ++i) call();
    samples.push_back((seconds_now() - before) / repeats);
  }
  std::ranges::sort(samples);
  return {samples[samples.size() / 2], samples.front()};
}

/// Numbers that do not depend on the order of the elements: how many, their mean, the root of the mean square, the
/// greatest size.
Json summary_of(const Tensor& result) {
  const Tensor wide = cast(result, f64);
  double sum = 0, squares = 0, most = 0;
  const auto values = wide.span<double>();
  for (const double x : values) sum += x, squares += x * x, most = std::max(most, std::abs(x));
  const auto count = static_cast<double>(std::max<std::size_t>(1, values.size()));
  return {values.size(), sum / count, std::sqrt(squares / count), most};
}

double bytes_of_all(std::span<const Tensor> tensors) {
  double bytes = 0;
  for (const Tensor& each : tensors) bytes += static_cast<double>(bytes_of({each.dtype(), each.shape()}));
  return bytes;
}

template <std::size_t N>
std::vector<Tensor> gradient_by_first(const Row& row, const Case& at, const Tensor& cotangent) {
  Tensor sources[N];
  std::copy_n(at.inputs.begin(), N, sources);
  GradientTape tape;
  for (const Tensor& each : sources) tape.watch(each);
  const Tensor target = row.ours(at).tensors.front();
  const auto found = tape.gradient(target, sources, {.output_gradients = cotangent, .unconnected = Unconnected::zero});
  return {found.begin(), found.end()};
}

/// A row at one size: its inputs, and the last of its inputs a cotangent where it is differentiated.
class Prepared {
 public:
  Prepared(const Row& row, std::int64_t n, bool differentiates) : row_(row), n_(n) {
    for (std::size_t i = 0; i < row.inputs.size(); ++i) inputs_.push_back(made_input(row.inputs[i], n, i));
    const Tensor result = row.ours({inputs_, n}).tensors.front();
    if (!differentiates) return;
    std::string extents;
    for (const std::int64_t d : result.shape()) extents += (extents.empty() ? "" : ",") + std::to_string(d);
    inputs_.push_back(made_input("f32[" + extents + "]", n, row.inputs.size()));
    while (sources_ < row.inputs.size() && inputs_[sources_].dtype() == f32) ++sources_;
    if (row.gradients != by_all) sources_ = static_cast<std::size_t>(row.gradients);
  }

  std::span<const Tensor> inputs() const { return inputs_; }
  std::vector<Tensor> call(std::span<const Tensor> given) const {
    Case at{{given.begin(), given.begin() + static_cast<std::ptrdiff_t>(row_.inputs.size())}, n_};
    if (sources_ == 0) return row_.ours(at).tensors;
    static constexpr decltype(&gradient_by_first<1>) by_number[] = {
        gradient_by_first<1>, gradient_by_first<2>, gradient_by_first<3>, gradient_by_first<4>, gradient_by_first<5>};
    require(sources_ <= std::size(by_number), row_.name, ": gradients by ", sources_, " inputs are not foreseen");
    return by_number[sources_ - 1](row_, at, given.back());
  }

 private:
  const Row& row_;
  const std::int64_t n_;
  std::vector<Tensor> inputs_;
  std::size_t sources_ = 0;
};

/// A row by value or gradient, op by op or inside a function.
class Measured {
 public:
  Measured(const Row& row, std::int64_t n, bool differentiates, bool is_compiled) : prepared_(row, n, differentiates) {
    if (is_compiled) compiled_.emplace(FunctionOptions{.name = row.name}, nullptr, 0);
  }

  Json answer(double seconds) {
    Tensors results;
    const CallTimes times = times_of([&] { results = run(); }, seconds);
    Json answer = {{"median_us", times.median * 1e6}, {"min_us", times.least * 1e6}};
    for (const Tensor& each : results) answer["values"].push_back(summary_of(each));
    answer["bytes"] = bytes_of_all(prepared_.inputs()) + bytes_of_all(results);
    if (!compiled_) return answer;
    double flops = 0;
    for (const Kernel& kernel : compiled_->explain().kernels) flops += kernel.flops;
    answer["flops"] = flops;
    return answer;
  }

 private:
  Tensors run() {
    const Body body = [&](In given) { return Called{prepared_.call(given), nullptr}; };
    Tensors results =
        compiled_ ? compiled_->call(prepared_.inputs(), {}, body).tensors : prepared_.call(prepared_.inputs());
    for (const Tensor& each : results) each.observed();
    return results;
  }

  const Prepared prepared_;
  std::optional<TracedFunction> compiled_;
};

/// Keeps the row and size that were asked for last, so that a later round compiles nothing again.
class Kept {
 public:
  Measured& of(const Row& row, std::int64_t n, bool differentiates, bool is_compiled) {
    if (row_ != &row || n_ != n) measured_.clear(), row_ = &row, n_ = n;
    return measured_.try_emplace({differentiates, is_compiled}, row, n, differentiates, is_compiled).first->second;
  }

 private:
  const Row* row_ = nullptr;
  std::int64_t n_ = 0;
  std::map<std::pair<bool, bool>, Measured> measured_;
};

Json described(const Row& row) {
  return {{"name", row.name},
          {"inputs", row.inputs},
          {"extents", {row.extents.small, row.extents.cached, row.extents.beyond}},
          {"torch", row.torch},
          {"jax", row.jax},
          {"gradients", row.gradients},
          {"draws", row.draws},
          {"shaped_by_values", row.shaped_by_values}};
}

Json answer_to(const Json& request, const Rows& rows, Kept& kept) {
  if (request.contains("list")) {
    Json all = Json::array();
    for (const Row& row : rows) all.push_back(described(row));
    const Json rates = {
        {"flops", thread_rates().flops}, {"cached", thread_rates().bytes}, {"memory", machine_rates().bytes}};
    return {{"rows", all}, {"rates", rates}};
  }
  const auto place = request.at("row").get<std::size_t>();
  Measured& measured =
      kept.of(rows.at(place), request.at("n"), request.at("what") == "gradient", request.at("mode") == "function");
  return measured.answer(request.at("seconds"));
}

Figures serve() {
  const Rows rows = all_rows();
  Kept kept;
  for (std::string line; std::getline(std::cin, line);) {
    Json answer;
    try {
      answer = answer_to(Json::parse(line), rows, kept);
    } catch (const std::exception& error) { answer = {{"error", error.what()}}; }
    std::cout << answer.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  }
  return {};
}

}  // namespace

Rows all_rows() {
  Rows rows;
  add_formulas(rows);
  add_reductions(rows);
  add_shapes(rows);
  add_products(rows);
  add_signals(rows);
  add_layers(rows);
  return rows;
}

void add_ops(Workloads& workloads) { workloads["ops"] = serve; }

}  // namespace gradus::bench
