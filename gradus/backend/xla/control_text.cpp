/// Branches and loops. Regions read values from around them; a loop changes its carries alone, the fault state among
/// them.
#include <algorithm>
#include "gradus/backend/xla/lowering.h"
#include "gradus/base/numbered.h"
#include "gradus/ops/control_ops.h"

namespace gradus::xla {
namespace {

HloValues part(const HloValues& values, std::size_t begin, std::size_t size) {
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(begin);
  return {first, first + static_cast<std::ptrdiff_t>(size)};
}

// ---------------------------------------------------------------- cond

HloValues write_cond(const Site& site, const Cond& op, const std::vector<bool>& wanted) {
  Lowering& to = site.to;
  const bool may_fail = op.if_true.may_fail() || op.if_false.may_fail();
  const HloValues inputs = part(site.in, 1, site.in.size() - 1);
  std::vector<Spec> specs;
  std::vector<std::size_t> places;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    if (!wanted[k]) continue;
    places.push_back(k);
    specs.push_back(op.if_true.output(k));
  }
  if (may_fail) specs.push_back(to.fault.spec);
  const auto side = [&](const Region& region) {
    const HloValue before = to.fault;
    const HloValues all = write_graph(to, region.graph(), inputs, wanted);
    HloValues results;
    for (const std::size_t k : places) results.push_back(all[k]);
    if (may_fail) results.push_back(to.fault);
    to.fault = before;
    return results;
  };
  const HloValues made =
      to.out.branch(site.in[0], specs, [&] { return side(op.if_true); }, [&] { return side(op.if_false); });
  HloValues results(wanted.size());
  for (std::size_t k = 0; k < places.size(); ++k) results[places[k]] = made[k];
  if (may_fail) to.fault = made.back();
  return results;
}

// ---------------------------------------------------------------- scan

/// The loop's state: its carries, its stacked results, and the fault state if it may fail.
class ScanText {
 public:
  ScanText(const Site& site, const Scan& op, const std::vector<bool>& wanted)
      : site_(site),
        op_(op),
        out_(site.out()),
        results_(op.body.outputs()),
        may_fail_(op.body.may_fail() || (op.last && op.last.may_fail())) {
    for (int c = 0; c < op.carries; ++c) state_.push_back(site.in[at(op.first_carry() + c)]);
    needed_.assign(results_, false);
    for (std::size_t k = 0; k < results_; ++k) needed_[k] = at_carry(k) || wanted[k];
    for (std::size_t k = at(op.carries); k < wanted.size(); ++k) {
      if (!wanted[k]) continue;
      stacks_.push_back(k);
      state_.push_back(out_.constant(spec_of(k).dtype, 0, spec_of(k).shape));
    }
    if (may_fail_) state_.push_back(site.to.fault);
  }

  HloValues write() {
    const std::int64_t full = op_.iterations - (op_.last ? 1 : 0);
    HloValues state = state_;
    if (op_.last && op_.reverse) state = iteration(op_.last, out_.integer(full), op_.last_rows, state);
    if (full > 0) state = loop(full, state);
    if (op_.last && !op_.reverse) state = iteration(op_.last, out_.integer(full), op_.last_rows, state);
    HloValues all(results_ + at(op_.carries));
    for (int c = 0; c < op_.carries; ++c) all[at(c)] = state[at(c)];
    for (std::size_t s = 0; s < stacks_.size(); ++s) all[stacks_[s]] = state[at(op_.carries) + s];
    if (may_fail_) site_.to.fault = state.back();
    return all;
  }

 private:
  bool at_carry(std::size_t output) const { return output < at(op_.carries); }
  bool is_history(std::size_t output) const { return output >= results_; }
  bool is_chunk(std::size_t output) const { return !is_history(output) && output >= at(op_.carries + op_.stacked); }
  Spec spec_of(std::size_t output) const {
    Spec spec = op_.body.output(is_history(output) ? output - results_ : output);
    if (is_chunk(output)) spec.shape.set(0, op_.total_rows());
    else spec.shape.insert(0, op_.iterations);
    return spec;
  }

  /// How many iterations are one turn of the loop.
  std::int64_t unrolled() const {
    constexpr int most_values = 4096;
    if (op_.counted || may_fail_) return 1;
    return std::clamp(most_values / std::max(op_.body.graph().size(), 1), 1, site_.to.options.unrolled);
  }
  HloValue element_of(const HloValue& number, const HloValue& count) {
    return op_.reverse ? out_.subtract(out_.subtract(count, out_.integer(1)), number) : number;
  }
  HloValues loop(std::int64_t full, HloValues state) {
    const std::int64_t at_once = unrolled(), turns = full / at_once;
    if (at_once == 1) return loop_of_one(full, state);
    const HloValue count = out_.integer(full);
    if (turns > 0)
      state = out_.for_loop(turns, state, [&](const HloValue& turn, HloValues now) {
        const HloValue first = out_.multiply(turn, out_.integer(at_once));
        for (std::int64_t i = 0; i < at_once; ++i)
          now = iteration(op_.body, element_of(out_.add(first, out_.integer(i)), count), op_.rows, now);
        return now;
      });
    for (std::int64_t i = turns * at_once; i < full; ++i)
      state = iteration(op_.body, element_of(out_.integer(i), count), op_.rows, state);
    return state;
  }
  HloValues loop_of_one(std::int64_t full, const HloValues& state) {
    HloValue count = out_.integer(full);
    if (op_.counted) {
      const HloValue given = site_.in[0], zero = out_.integer(0);
      count = out_.select(out_.compare("GT", given, count), count, given);
      count = out_.select(out_.compare("LT", count, zero), zero, count);
    }
    HloValues start = state;
    start.insert(start.begin(), out_.integer(0));
    HloValues end = out_.while_loop(
        start,
        [&](const HloValues& in) {
          HloValue goes_on = out_.compare("LT", in[0], count);
          if (!may_fail_) return goes_on;
          site_.to.fault = in.back();
          return out_.both(goes_on, site_.to.is_fine());
        },
        [&](const HloValues& in) {
          HloValues next = iteration(op_.body, element_of(in[0], count), op_.rows, part(in, 1, in.size() - 1));
          next.insert(next.begin(), out_.add(in[0], out_.integer(1)));
          return next;
        });
    end.erase(end.begin());
    return end;
  }
  /// One iteration on element or chunk `element`; a chunk has `rows` rows.
  HloValues iteration(const Region& body, const HloValue& element, std::int64_t rows, const HloValues& state) {
    const HloValue outer_fault = site_.to.fault;
    if (may_fail_) site_.to.fault = state.back();
    const HloValue first_row = op_.rows > 0 ? out_.multiply(element, out_.integer(op_.rows)) : element;
    HloValues inputs;
    for (std::size_t k = 0; k < body.inputs(); ++k) {
      const int operand = static_cast<int>(k) + op_.first_carry();
      if (k < at(op_.carries)) inputs.push_back(state[k]);
      else if (operand >= op_.first_whole()) inputs.push_back(site_.in[at(operand)]);
      else if (operand >= op_.first_chunk()) inputs.push_back(out_.row_at(site_.in[at(operand)], first_row, 0, rows));
      else inputs.push_back(out_.reshape(out_.row_at(site_.in[at(operand)], element, 0), body.input(k).shape));
    }
    const HloValues made = write_graph(site_.to, body.graph(), inputs, needed_);
    HloValues next = part(made, 0, at(op_.carries));
    for (std::size_t s = 0; s < stacks_.size(); ++s) {
      const std::size_t k = stacks_[s];
      const HloValue& before = state[at(op_.carries) + s];
      HloValue row = is_history(k) ? state[k - results_] : made[k];
      if (!is_chunk(k)) {
        Shape shape = row.shape();
        shape.insert(0, 1);
        row = out_.reshape(row, shape);
      }
      next.push_back(out_.with_row_at(before, row, is_chunk(k) ? first_row : element, 0));
    }
    if (may_fail_) next.push_back(site_.to.fault);
    site_.to.fault = outer_fault;
    return next;
  }

  const Site& site_;
  const Scan& op_;
  HloWriter& out_;
  const std::size_t results_;  // of the body
  const bool may_fail_;
  std::vector<bool> needed_;         // of the body's results
  std::vector<std::size_t> stacks_;  // outputs that are stacked, joined, or histories
  HloValues state_;
};

// ---------------------------------------------------------------- while

HloValues write_while(const Site& site, const While& op, const std::vector<bool>& wanted) {
  Lowering& to = site.to;
  HloWriter& out = site.out();
  const std::size_t carries = at(op.carries);
  const bool may_fail = op.condition.may_fail() || op.body.may_fail();
  const HloValues whole = part(site.in, carries, site.in.size() - carries);
  HloValues start = part(site.in, 0, carries);
  start.push_back(out.integer(0));
  std::vector<std::size_t> histories;
  for (std::size_t k = carries + 1; k < wanted.size(); ++k) {
    if (!wanted[k]) continue;
    histories.push_back(k - carries - 1);
    Spec spec = site.in[histories.back()].spec;
    spec.shape.insert(0, op.max_iterations);
    start.push_back(out.constant(spec.dtype, 0, spec.shape));
  }
  // A condition that may fail is computed with the body before it, so that its fault is carried.
  const auto holds = [&](const HloValues& now) {
    HloValues inputs = part(now, 0, carries);
    inputs.insert(inputs.end(), whole.begin(), whole.end());
    HloValue goes_on = write_graph(to, op.condition.graph(), inputs)[0];
    if (op.max_iterations > 0)
      goes_on = out.both(goes_on, out.compare("LT", now[carries], out.integer(op.max_iterations)));
    return may_fail ? out.both(goes_on, to.is_fine()) : goes_on;
  };
  if (may_fail) {
    const HloValue first = holds(start);
    start.push_back(to.fault);
    start.push_back(first);
  }
  const HloValues end = out.while_loop(
      start, [&](const HloValues& in) { return may_fail ? in.back() : holds(in); },
      [&](const HloValues& in) {
        const HloValue outer_fault = to.fault;
        if (may_fail) to.fault = in[in.size() - 2];
        HloValues inputs = part(in, 0, carries);
        inputs.insert(inputs.end(), whole.begin(), whole.end());
        HloValues next = write_graph(to, op.body.graph(), inputs);
        next.push_back(out.add(in[carries], out.integer(1)));
        for (std::size_t h = 0; h < histories.size(); ++h) {
          Shape row = in[histories[h]].shape();
          row.insert(0, 1);
          next.push_back(out.with_row_at(in[carries + 1 + h], out.reshape(in[histories[h]], row), in[carries], 0));
        }
        if (may_fail) {
          const HloValue goes_on = holds(next);
          next.push_back(to.fault);
          next.push_back(goes_on);
        }
        to.fault = outer_fault;
        return next;
      });
  HloValues all(wanted.size());
  for (std::size_t k = 0; k <= carries; ++k) all[k] = end[k];
  for (std::size_t h = 0; h < histories.size(); ++h) all[carries + 1 + histories[h]] = end[carries + 1 + h];
  if (may_fail) to.fault = end[end.size() - 2];
  return all;
}

}  // namespace

HloValues write_control(const Site& site, const std::vector<bool>& wanted) {
  if (const Cond* op = site.v.op.as<Cond>()) return write_cond(site, *op, wanted);
  if (const Scan* op = site.v.op.as<Scan>()) return ScanText(site, *op, wanted).write();
  if (const While* op = site.v.op.as<While>()) return write_while(site, *op, wanted);
  site.refuse("it has no form in StableHLO");
}

}  // namespace gradus::xla
