/// Gradients of branches and loops. The gradient of a branch is a branch: the gradient of the region that was taken,
/// which it computes again. The gradient of a loop is a loop backwards over the histories of the carries. It carries
/// the cotangents of the carries, and those gradients of values seen by all iterations whose sums cannot wait until
/// after it.
#include <algorithm>
#include <bit>
#include <memory>
#include <optional>
#include "gradus/base/numbered.h"
#include "gradus/graph/context.h"
#include "gradus/graph/scope.h"
#include "gradus/graph/transforms.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control_ops.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/loop_sums.h"
#include "gradus/ops/views.h"

namespace gradus {
namespace {

Tensor zeros_of(const Spec& spec) { return fill(spec.shape, 0, spec.dtype); }
Tensor or_zeros(Tensor gradient, const Tensor& like) { return gradient.defined() ? gradient : zeros_of(like.spec()); }
Tensor sum_of(const Tensor& a, const Tensor& b) { return !a.defined() ? b : !b.defined() ? a : a + b; }
template <class T> Tensors outputs_of(T op, In operands, int count) {
  Tensors results;
  for (op.output = 0; op.output < count; ++op.output) results.push_back(gradus::detail::apply(op, operands));
  return results;
}
void append(Tensors& list, In more) { list.insert(list.end(), more.begin(), more.end()); }

/// The symbols of a trace, kind by kind, in the order in which its operands were listed.
class Taken {
 public:
  explicit Taken(In symbols) : rest_(symbols) {}
  In next(std::size_t n) {
    const In taken = rest_.first(n);
    rest_ = rest_.subspan(n);
    return taken;
  }

 private:
  In rest_;
};

/// The gradient of a loop.
class LoopGradient {
 public:
  /// `of` are the cotangents of the carries, the singles, the chunks and the histories of `loop`.
  LoopGradient(const Scan& loop, In in, Tensors histories, In of, const std::vector<bool>& wanted)
      : loop_(loop), in_(in), histories_(std::move(histories)), of_(of) {
    for (int i = 0; i < static_cast<int>(in.size()); ++i) {
      const bool floating = is_floating(in[at(i)].dtype());
      if (i >= loop.first_carry() && i < loop.first_single()) {
        if (floating) carries_.push_back(i - loop.first_carry());
      } else if (floating && wanted[at(i)] && i >= loop.first_single()) {
        (i < loop.first_chunk() ? singles_ : i < loop.first_whole() ? chunks_ : whole_).push_back(i);
      }
    }
    const int results = static_cast<int>(loop.body.outputs());
    for (int k = loop.carries; k < results; ++k)
      if (of[at(k)].defined()) (k < loop.carries + loop.stacked ? single_results_ : chunk_results_).push_back(k);
    for (int k : carries_)
      if (of[at(results + k)].defined()) history_results_.push_back(k);
  }

  Tensors run() {
    Scan backwards{.chunks = loop_.chunks + static_cast<int>(chunk_results_.size()),
                   .iterations = loop_.iterations,
                   .rows = loop_.rows,
                   .last_rows = loop_.last_rows,
                   .reverse = !loop_.reverse,
                   .counted = loop_.counted};
    const Tensors singles = single_operands(), chunks = chunk_operands();
    backwards.singles = static_cast<int>(singles.size());
    const Tensors taken = concatenated({singles, chunks});
    const Iteration whole = trace(taken, backwards.singles, loop_.body, loop_.rows);
    std::optional<Iteration> part;
    if (loop_.last) part = trace(taken, backwards.singles, loop_.last, loop_.last_rows);
    backwards.carries = static_cast<int>(carries_.size() + whole.sums->symbols().size());
    backwards.stacked = static_cast<int>(singles_.size() + whole.sums->kept().size());
    Tensors operands;
    if (loop_.counted) operands.push_back(in_[0]);
    append(operands, first_carries(*whole.sums));
    append(operands, taken);
    append(operands, in_.subspan(at(loop_.first_whole())));
    Tensors captures;
    whole.trace.collect(whole.trace.results(), captures);
    if (part) part->trace.collect(part->trace.results(), captures);
    backwards.body = region_of(whole, captures);
    if (part) backwards.last = region_of(*part, captures);
    append(operands, captures);
    return terms_of(backwards, *whole.sums, operands);
  }

 private:
  /// One iteration backwards, and what becomes of its sums.
  struct Iteration {
    RegionTrace trace;
    std::unique_ptr<LoopSums> sums;
  };

  Tensors first_carries(const LoopSums& sums) const {
    Tensors made;
    for (int k : carries_) made.push_back(or_zeros(of_[at(k)], in_[at(loop_.first_carry() + k)]));
    for (const Tensor& symbol : sums.symbols()) made.push_back(zeros_of(symbol.spec()));
    return made;
  }
  Tensors single_operands() const {
    Tensors made = histories_;
    append(made, in_.subspan(at(loop_.first_single()), at(loop_.singles)));
    for (int k : single_results_) made.push_back(of_[at(k)]);
    for (int k : history_results_) made.push_back(of_[loop_.body.outputs() + at(k)]);
    return made;
  }
  Tensors chunk_operands() const {
    const In chunks = in_.subspan(at(loop_.first_chunk()), at(loop_.chunks));
    Tensors made(chunks.begin(), chunks.end());
    for (int k : chunk_results_) made.push_back(of_[at(k)]);
    return made;
  }

  /// `taken`: what iterations take singles of, so many, and chunks.
  Iteration trace(In taken, int singles, const Region& body, std::int64_t rows) const {
    Tensors of_carries;
    for (int k : carries_) of_carries.push_back(in_[at(loop_.first_carry() + k)]);
    std::vector<Spec> specs = specs_of(concatenated({of_carries, taken, in_.subspan(at(loop_.first_whole()))}));
    for (std::size_t i = 0; i < taken.size(); ++i)
      if (Shape& shape = specs[carries_.size() + i].shape; i < at(singles)) shape.erase(0);
      else shape.set(0, rows);
    std::unique_ptr<LoopSums> sums;
    RegionTrace made("the gradient of a loop", specs, [&](In in) {
      const In whole = in.subspan(carries_.size() + taken.size());
      Tensors found = step(in, body);
      const In stacked = In(found).subspan(carries_.size() + whole_.size(), singles_.size());
      std::vector<LoopSums::Taken> through;
      if (!loop_.counted && !loop_.last)  // where iterations are left out, what they would add must be left out
        for (std::size_t i = 0; i < taken.size(); ++i) through.push_back({in[carries_.size() + i], taken[i]});
      sums = std::make_unique<LoopSums>(loop_.iterations, std::move(through), whole, stacked);
      for (std::size_t i = 0; i < whole_.size(); ++i) sums->add(found[carries_.size() + i], in_[at(whole_[i])].spec());
      return concatenated({In(found).first(carries_.size()), sums->next(), stacked, sums->kept(),
                           In(found).subspan(carries_.size() + whole_.size() + singles_.size())});
    });
    return {std::move(made), std::move(sums)};
  }
  Region region_of(const Iteration& of, In captures) const {
    Tensors symbols = of.trace.symbols();
    const In sums = of.sums->symbols();
    symbols.insert(symbols.begin() + static_cast<std::ptrdiff_t>(carries_.size()), sums.begin(), sums.end());
    return of.trace.region(of.trace.results(), symbols, captures);
  }

  /// One iteration backwards. (cotangents of the carries; histories, singles, cotangents of singles and histories;
  /// chunks, cotangents of chunks; whole) -> (cotangents of the carries; gradients by whole, which may be empty; by
  /// singles; by chunks)
  Tensors step(In in, const Region& body) const {
    Taken taken(in);
    const In carried = taken.next(carries_.size());
    const In histories = taken.next(histories_.size()), singles = taken.next(at(loop_.singles));
    const In of_singles = taken.next(single_results_.size()), of_histories = taken.next(history_results_.size());
    const In chunks = taken.next(at(loop_.chunks)), of_chunks = taken.next(chunk_results_.size());
    Tensors inputs(histories.begin(), histories.end());
    for (In list : {singles, chunks, taken.next(in_.size() - at(loop_.first_whole()))}) append(inputs, list);

    Tensors seeds(body.outputs());
    for (std::size_t i = 0; i < carries_.size(); ++i) seeds[at(carries_[i])] = carried[i];
    for (std::size_t i = 0; i < single_results_.size(); ++i) seeds[at(single_results_[i])] = of_singles[i];
    for (std::size_t i = 0; i < chunk_results_.size(); ++i) seeds[at(chunk_results_[i])] = of_chunks[i];

    Tensors sources;
    for (int k : carries_) sources.push_back(inputs[at(k)]);
    for (const auto* list : {&whole_, &singles_, &chunks_})
      for (int i : *list) sources.push_back(inputs[at(i - loop_.first_carry())]);
    Tensors found = Transforms::vjp(replay(body, inputs), sources, seeds, inputs);

    for (std::size_t i = 0; i < history_results_.size(); ++i) {
      const auto place = static_cast<std::size_t>(std::ranges::find(carries_, history_results_[i]) - carries_.begin());
      found[place] = sum_of(found[place], of_histories[i]);
    }
    for (std::size_t i = 0; i < found.size(); ++i)
      if (i < carries_.size() || i >= carries_.size() + whole_.size()) found[i] = or_zeros(found[i], sources[i]);
    return found;
  }

  Tensors terms_of(Scan backwards, const LoopSums& sums, In operands) const {
    const auto take = [&](std::size_t n) {
      Tensors taken;
      for (; n > 0; --n, ++backwards.output) taken.push_back(gradus::detail::apply(backwards, operands));
      return taken;
    };
    const Tensors of_carries = take(carries_.size()), carried = take(sums.symbols().size());
    const Tensors stacked = take(singles_.size() + sums.kept().size()), of_chunks = take(chunks_.size());
    const Tensors of_whole = sums.results(carried, stacked);
    Tensors terms(in_.size());
    for (std::size_t i = 0; i < carries_.size(); ++i) terms[at(loop_.first_carry() + carries_[i])] = of_carries[i];
    for (std::size_t i = 0; i < whole_.size(); ++i) terms[at(whole_[i])] = of_whole[i];
    for (std::size_t i = 0; i < singles_.size(); ++i) terms[at(singles_[i])] = stacked[i];
    for (std::size_t i = 0; i < chunks_.size(); ++i) terms[at(chunks_[i])] = of_chunks[i];
    return terms;
  }

  const Scan& loop_;
  const In in_;
  const Tensors histories_;
  const In of_;
  std::vector<int> carries_;                                           // those that have a gradient, by number
  std::vector<int> singles_, chunks_, whole_;                          // operands whose gradient is wanted
  std::vector<int> single_results_, chunk_results_, history_results_;  // outputs that have a cotangent
};

}  // namespace

Tensors Cond::vjp(In in, const Cotangents& dy) const {
  Tensors operands(in.begin() + 1, in.end());
  for (const Tensor& each : dy.of)
    if (each.defined()) operands.push_back(each);
  std::vector<std::size_t> places;
  for (std::size_t i = 1; i < in.size(); ++i)
    if (dy.wanted[i] && is_floating(in[i].dtype())) places.push_back(i);
  const auto gradient_of = [&](const Region& region) {
    return RegionTrace("the gradient of cond", specs_of(operands), [&](In x) {
      const In inputs = x.first(in.size() - 1);
      Tensors seeds, sources;
      std::size_t next = inputs.size();
      for (const Tensor& each : dy.of) seeds.push_back(each.defined() ? x[next++] : Tensor());
      for (std::size_t i : places) sources.push_back(inputs[i - 1]);
      Tensors found = Transforms::vjp(replay(region, inputs), sources, seeds, inputs);
      for (std::size_t k = 0; k < found.size(); ++k) found[k] = or_zeros(found[k], sources[k]);
      return found;
    });
  };
  const RegionTrace yes = gradient_of(if_true), no = gradient_of(if_false);
  Tensors captures;
  yes.collect(yes.results(), captures);
  no.collect(no.results(), captures);
  Cond gradient{yes.region(yes.results(), yes.symbols(), captures), no.region(no.results(), no.symbols(), captures)};
  operands.insert(operands.begin(), in[0]);
  append(operands, captures);
  Tensors terms(in.size());
  for (std::size_t i : places) {
    terms[i] = gradus::detail::apply(gradient, In(operands));
    ++gradient.output;
  }
  return terms;
}

Tensors Scan::vjp(In in, const Cotangents& dy) const {
  Tensors histories;
  Scan sibling = *this;
  for (int k = 0; k < carries; ++k) {
    sibling.output = static_cast<int>(body.outputs()) + k;
    histories.push_back(gradus::detail::apply(sibling, in));
  }
  return LoopGradient(*this, in, std::move(histories), dy.of, dy.wanted).run();
}

namespace {

/// How often a loop without bound whose gradient is taken within a trace may run: a scan of `width` iterations of scans
/// of `width` iterations ..., `levels` deep. Each level keeps its states while it is gone through backwards.
constexpr std::int64_t width = 64, levels = 3, most_iterations = width * width * width;

/// `count` iterations of the body of `loop`, at most width^level of them.
Tensors run_counted(std::int64_t level, const While& loop, const Tensor& count, In state, In whole) {
  const auto carries = static_cast<int>(state.size());
  if (level == 1) {
    const Scan scan{.body = loop.body, .carries = carries, .iterations = width, .counted = true};
    return outputs_of(scan, concatenated({{&count, 1}, state, whole}), carries);
  }
  const Tensor each = maximum(floor_divide(count + (width - 1), fill({}, width, i64)), 1);
  const Tensor rounds = floor_divide(count + (each - 1), each);
  const Tensors operands = concatenated({state, {&count, 1}, whole, {&each, 1}});
  const RegionTrace trace("the gradient of a loop", specs_of(operands), [&](In in) {
    const In own = in.first(state.size()), seen = in.subspan(state.size() + 1, whole.size());
    const Tensor now = minimum(in[state.size()], in.back());
    Tensors next = run_counted(level - 1, loop, now, own, seen);
    next.push_back(in[state.size()] - now);
    return next;
  });
  const Captured made = capture(trace);
  const Scan scan{.body = made.region, .carries = carries + 1, .iterations = width, .counted = true};
  return outputs_of(scan, concatenated({{&rounds, 1}, operands, made.captures}), carries);
}

}  // namespace

/// The gradient of a loop whose bound is known is that of a scan over as many iterations as were run. Otherwise the
/// number of iterations is looked at, and the loop runs again with a bound; where it cannot be looked at, the loop runs
/// again as scans of scans.
Tensors While::vjp(In in, const Cotangents& dy) const {
  if (max_iterations > 0) return bounded_vjp(in, dy);
  While counting = *this;
  counting.output = carries;
  if (std::ranges::any_of(in, &Tensor::is_symbolic)) return unbounded_vjp(gradus::detail::apply(counting, in), in, dy);
  While sibling = *this;
  {
    const Untraced now;
    const auto happened = static_cast<std::uint64_t>(gradus::detail::apply(counting, in).item());
    sibling.max_iterations = static_cast<std::int64_t>(std::bit_ceil(std::max<std::uint64_t>(1, happened)));
  }
  Cotangents bounded = dy;
  bounded.of.resize(at(sibling.outputs()));
  return sibling.bounded_vjp(in, bounded);
}

Tensors While::unbounded_vjp(const Tensor& count, In in, const Cotangents& dy) const {
  Tensors held, sources;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < in.size(); ++i) {
    held.push_back(gradus::detail::apply(ReshapeOp{in[i].shape()}, in[i]));  // where the walk back ends
    if (!dy.wanted[i] || !is_floating(in[i].dtype())) continue;
    sources.push_back(held[i]);
    places.push_back(i);
  }
  const NameScope scope("the gradient of while_loop (for longer loops give max_iterations)");
  const Tensor checked = check_range(count, most_iterations + 1, false);
  const In own = In(held).first(at(carries)), whole = In(held).subspan(at(carries));
  const Tensors found = Transforms::vjp(run_counted(levels, *this, checked, own, whole), sources,
                                        In(dy.of).first(at(carries)), concatenated({held, {&checked, 1}}));
  Tensors terms(in.size());
  for (std::size_t k = 0; k < places.size(); ++k) terms[places[k]] = found[k];
  return terms;
}

Tensors While::bounded_vjp(In in, const Cotangents& dy) const {
  While sibling = *this;
  sibling.output = carries;
  const Tensor count = gradus::detail::apply(sibling, in);
  Tensors histories;
  for (int k = 0; k < carries; ++k) {
    sibling.output = carries + 1 + k;
    histories.push_back(gradus::detail::apply(sibling, in));
  }
  const Scan loop{.body = body, .carries = carries, .iterations = max_iterations, .counted = true};
  Tensors operands{count}, of(dy.of.begin(), dy.of.begin() + carries);
  append(operands, in);
  append(of, In(dy.of).subspan(at(carries) + 1));
  std::vector<bool> wanted{false};
  wanted.insert(wanted.end(), dy.wanted.begin(), dy.wanted.end());
  Tensors terms = LoopGradient(loop, operands, std::move(histories), of, wanted).run();
  terms.erase(terms.begin());
  return terms;
}

}  // namespace gradus
