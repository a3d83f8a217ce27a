/// Batching rules of branches and loops. A branch whose predicate differs from row to row computes both sides and
/// chooses. A loop goes on as long as a row needs it, while rows that are done keep their state.
#include <algorithm>
#include "gradus/base/numbered.h"
#include "gradus/graph/transforms.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control_ops.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/masked_rows.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

using Flags = std::vector<bool>;

Flags flags_of_rows(std::uint32_t mask, std::size_t count) {
  Flags rows;
  for (std::size_t i = 0; i < count; ++i) rows.push_back(has_rows(mask, i));
  return rows;
}

/// [a, b, ...] -> [b, a, ...]
Tensor exchange_first(const Tensor& x) {
  std::vector<int> order(at(x.shape().rank()));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::swap(order[0], order[1]);
  return transpose(x, order);
}

/// `region` on n rows.
Tensors on_rows(const Region& region, In x, const Flags& rows, std::int64_t n, Flags& varied) {
  return Transforms::vmap([&](In row) { return replay(region, row); }, x, rows, n, varied);
}
Tensors on_rows(const Region& region, In x, const Flags& rows, std::int64_t n) {
  Flags varied;
  Tensors results = on_rows(region, x, rows, n, varied);
  for (std::size_t k = 0; k < results.size(); ++k)
    if (!varied[k]) results[k] = repeat_rows(results[k], n);
  return results;
}

/// [n, elements, ...] with zeros in elements that row r, which has counts[r] of them, does not have.
Tensor without_rest(const Tensor& x, const Tensor& counts) {
  const std::int64_t elements = x.shape()[1];
  const Tensor there = reshape(iota({elements}, i64), {1, elements}) < expand_dims(counts, 1);
  return choose_rows(there, x, fill_like(x, 0));
}

/// `carries` with those that vary after an iteration if these vary before it; `body` says which results vary.
template <class Body> Flags settled(Flags carries, Body varied_after) {
  for (bool grown = true; std::exchange(grown, false);) {
    const Flags after = varied_after(carries);
    for (std::size_t k = 0; k < carries.size(); ++k)
      if (after[k] && !carries[k]) grown = carries[k] = true;
  }
  return carries;
}

// ---------------------------------------------------------------- scan

class ScanOnRows {
 public:
  ScanOnRows(const Scan& scan, In in, std::uint32_t mask, std::int64_t n)
      : scan_(scan), in_(in), n_(n), rows_(flags_of_rows(mask, in.size())), counts_vary_(scan.counted && rows_[0]) {
    Flags carries(rows_.begin() + scan.first_carry(), rows_.begin() + scan.first_single());
    if (counts_vary_) carries.assign(carries.size(), true);
    carries_ = settled(std::move(carries), [&](const Flags& flags) { return varied_after(flags); });
  }

  Tensor result() {
    Scan made = scan_;
    made.body = {};
    made.last = {};
    Tensors operands = operands_on_rows(made);
    Tensors captures;
    const RegionTrace whole = trace(operands, scan_.body, scan_.rows);
    whole.collect(whole.results(), captures);
    if (scan_.last) {
      const RegionTrace part = trace(operands, scan_.last, scan_.last_rows);
      part.collect(part.results(), captures);
      made.last = part.region(part.results(), part.symbols(), captures);
    }
    made.body = whole.region(whole.results(), whole.symbols(), captures);
    return as_result(gradus::detail::apply(made, In(concatenated({operands, captures}))));
  }

 private:
  /// Flags of the inputs of the body.
  Flags flags_of_body(const Flags& carries) const {
    Flags flags(rows_.begin() + scan_.first_carry(), rows_.end());
    std::copy(carries.begin(), carries.end(), flags.begin());
    return flags;
  }
  /// The carries that vary after an iteration, found by a trace that is thrown away.
  Flags varied_after(const Flags& carries) const {
    const Flags flags = flags_of_body(carries);
    std::vector<Spec> specs = scan_.body.input_specs();
    for (std::size_t i = 0; i < specs.size(); ++i)
      if (flags[i]) specs[i].shape.insert(0, n_);
    Flags varied;
    const RegionTrace probe("vectorized_map", specs, [&](In x) { return on_rows(scan_.body, x, flags, n_, varied); });
    return varied;
  }

  /// (count, carries, singles, chunks, [the number of the element], whole, [the counts of the rows])
  Tensors operands_on_rows(Scan& made) const {
    Tensors operands;
    if (scan_.counted) operands.push_back(counts_vary_ ? reduce_max(in_[0]) : in_[0]);
    for (int k = 0; k < scan_.carries; ++k) {
      const std::size_t i = at(scan_.first_carry() + k);
      operands.push_back(carries_[at(k)] && !rows_[i] ? repeat_rows(in_[i], n_) : in_[i]);
    }
    for (int i = scan_.first_single(); i < scan_.first_whole(); ++i) {
      if (i == scan_.first_chunk() && counts_vary_) add_numbers(operands, made);
      operands.push_back(rows_[at(i)] ? exchange_first(in_[at(i)]) : in_[at(i)]);
    }
    if (counts_vary_ && scan_.chunks == 0) add_numbers(operands, made);
    for (std::size_t i = at(scan_.first_whole()); i < in_.size(); ++i) operands.push_back(in_[i]);
    if (counts_vary_) operands.push_back(in_[0]);
    return operands;
  }
  void add_numbers(Tensors& operands, Scan& made) const {
    operands.push_back(iota({scan_.iterations}, i64));
    ++made.singles;
  }

  RegionTrace trace(In operands, const Region& body, std::int64_t rows) const {
    std::vector<Spec> specs;
    const int numbers = counts_vary_ ? 1 : 0;
    const int chunk = scan_.first_chunk() + numbers, whole = scan_.first_whole() + numbers;
    for (int i = scan_.first_carry(); i < static_cast<int>(operands.size()); ++i) {
      Spec spec = operands[at(i)].spec();
      if (i >= scan_.first_single() && i < chunk) spec.shape.erase(0);
      else if (i >= chunk && i < whole) spec.shape.set(0, rows);
      specs.push_back(spec);
    }
    return RegionTrace("vectorized_map", specs, [&](In x) { return step(x, body); });
  }

  Tensors step(In x, const Region& body) const {
    const std::size_t number_place = at(scan_.first_chunk() - scan_.first_carry());
    Tensors inputs(x.begin(), x.end());
    Tensor active;
    if (counts_vary_) {
      active = inputs[number_place] < inputs.back();
      inputs.pop_back();
      inputs.erase(inputs.begin() + static_cast<std::ptrdiff_t>(number_place));
    }
    for (int i = scan_.first_chunk(); i < scan_.first_whole(); ++i)
      if (rows_[at(i)]) {
        Tensor& chunk = inputs[at(i - scan_.first_carry())];
        chunk = exchange_first(chunk);
      }
    Flags varied;
    Tensors results = on_rows(body, inputs, flags_of_body(carries_), n_, varied);
    for (std::size_t k = 0; k < results.size(); ++k) {
      const bool is_carry = k < at(scan_.carries), rows = !is_carry || carries_[k];
      if (rows && !varied[k]) results[k] = repeat_rows(results[k], n_);
      if (active.defined()) results[k] = choose_rows(active, results[k], is_carry ? x[k] : fill_like(results[k], 0));
      if (k >= at(scan_.carries + scan_.stacked)) results[k] = exchange_first(results[k]);
    }
    return results;
  }

  Tensor as_result(const Tensor& y) const {
    const int results = static_cast<int>(scan_.body.outputs());
    const bool is_history = scan_.output >= results;
    if (scan_.output < scan_.carries) return carries_[at(scan_.output)] ? y : repeat_rows(y, n_);
    if (is_history && !carries_[at(scan_.output - results)]) return repeat_rows(y, n_);
    const Tensor rows = exchange_first(y);
    return is_history && counts_vary_ ? without_rest(rows, in_[0]) : rows;
  }

  const Scan& scan_;
  const In in_;
  const std::int64_t n_;
  const Flags rows_;
  const bool counts_vary_;
  Flags carries_;
};

// ---------------------------------------------------------------- while

class WhileOnRows {
 public:
  WhileOnRows(const While& loop, In in, std::uint32_t mask, std::int64_t n)
      : loop_(loop), in_(in), n_(n), rows_(flags_of_rows(mask, in.size())) {
    Flags carries(rows_.begin(), rows_.begin() + loop.carries);
    carries_ = settled(std::move(carries), [&](const Flags& flags) { return varied_after(loop_.body, flags); });
    counts_vary_ = varied_after(loop_.condition, carries_)[0];
    if (counts_vary_) carries_.assign(carries_.size(), true);
  }

  Tensor result() {
    Tensors operands;
    for (std::size_t k = 0; k < carries_.size(); ++k)
      operands.push_back(carries_[k] && !rows_[k] ? repeat_rows(in_[k], n_) : in_[k]);
    if (counts_vary_) operands.push_back(fill({n_}, 0, i64));
    for (std::size_t i = carries_.size(); i < in_.size(); ++i) operands.push_back(in_[i]);
    const std::vector<Spec> specs = specs_of(operands);
    const RegionTrace condition("vectorized_map", specs, [&](In x) {
      const Tensor asked = ask(x);
      return Tensors{counts_vary_ ? reduce_any(asked) : asked};
    });
    const RegionTrace body("vectorized_map", specs, [&](In x) { return step(x); });
    Tensors captures;
    condition.collect(condition.results(), captures);
    body.collect(body.results(), captures);
    While made{.condition = condition.region(condition.results(), condition.symbols(), captures),
               .body = body.region(body.results(), body.symbols(), captures),
               .carries = loop_.carries + (counts_vary_ ? 1 : 0),
               .max_iterations = loop_.max_iterations};
    return result_of(made, concatenated({operands, captures}));
  }

 private:
  Flags flags_with(const Flags& carries) const {
    Flags flags = rows_;
    std::copy(carries.begin(), carries.end(), flags.begin());
    return flags;
  }
  Flags varied_after(const Region& region, const Flags& carries) const {
    const Flags flags = flags_with(carries);
    std::vector<Spec> specs = region.input_specs();
    for (std::size_t i = 0; i < specs.size(); ++i)
      if (flags[i]) specs[i].shape.insert(0, n_);
    Flags varied;
    const RegionTrace probe("vectorized_map", specs, [&](In x) { return on_rows(region, x, flags, n_, varied); });
    return varied;
  }
  /// The inputs of the loop's own regions: without the counts.
  Tensors own_inputs(In x) const {
    Tensors inputs(x.begin(), x.end());
    if (counts_vary_) inputs.erase(inputs.begin() + loop_.carries);
    return inputs;
  }
  Tensor ask(In x) const {
    Flags varied;
    return on_rows(loop_.condition, own_inputs(x), flags_with(carries_), n_, varied)[0];
  }
  Tensors step(In x) const {
    Flags varied;
    Tensors results = on_rows(loop_.body, own_inputs(x), flags_with(carries_), n_, varied);
    for (std::size_t k = 0; k < results.size(); ++k)
      if (carries_[k] && !varied[k]) results[k] = repeat_rows(results[k], n_);
    if (!counts_vary_) return results;
    const Tensor active = ask(x);
    for (std::size_t k = 0; k < results.size(); ++k) results[k] = choose_rows(active, results[k], x[k]);
    const Tensor& counts = x[results.size()];
    results.push_back(where(active, counts + 1, counts));
    return results;
  }
  Tensor result_of(While made, In operands) const {
    const auto output = [&](int k) {
      made.output = k;
      return gradus::detail::apply(made, operands);
    };
    const Tensor counts = output(loop_.carries);
    if (loop_.output == loop_.carries) return counts_vary_ ? counts : repeat_rows(counts, n_);
    const bool is_history = loop_.output > loop_.carries;
    const int carry = is_history ? loop_.output - loop_.carries - 1 : loop_.output;
    const Tensor y = output(is_history ? made.carries + 1 + carry : carry);
    if (!carries_[at(carry)]) return repeat_rows(y, n_);
    if (!is_history) return y;
    return counts_vary_ ? without_rest(exchange_first(y), counts) : exchange_first(y);
  }

  const While& loop_;
  const In in_;
  const std::int64_t n_;
  const Flags rows_;
  Flags carries_;
  bool counts_vary_ = false;
};

}  // namespace

Tensor Cond::batch(In in, std::uint32_t mask, std::int64_t n) const {
  const Flags rows = flags_of_rows(mask, in.size());
  const Flags flags(rows.begin() + 1, rows.end());
  const In inputs = in.subspan(1);
  if (rows[0])
    return choose_rows(in[0], on_rows(if_true, inputs, flags, n)[at(output)],
                       on_rows(if_false, inputs, flags, n)[at(output)]);
  const std::vector<Spec> specs = specs_of(inputs);
  const RegionTrace yes("vectorized_map", specs, [&](In x) { return on_rows(if_true, x, flags, n); });
  const RegionTrace no("vectorized_map", specs, [&](In x) { return on_rows(if_false, x, flags, n); });
  Tensors captures;
  yes.collect(yes.results(), captures);
  no.collect(no.results(), captures);
  const Cond made{yes.region(yes.results(), yes.symbols(), captures), no.region(no.results(), no.symbols(), captures),
                  output};
  return gradus::detail::apply(made, In(concatenated({in, captures})));
}

Tensor Scan::batch(In in, std::uint32_t mask, std::int64_t n) const { return ScanOnRows(*this, in, mask, n).result(); }

Tensor While::batch(In in, std::uint32_t mask, std::int64_t n) const {
  return WhileOnRows(*this, in, mask, n).result();
}

}  // namespace gradus
