/// Seconds first, then bytes.
#include "gradus/advice/verdict.h"
#include <algorithm>
#include <limits>
#include <utility>
#include "gradus/advice/words.h"

namespace gradus {
namespace {

using advice_words::percent;

constexpr double fewer_bytes = 0.9;  // a share that is worth a change
/// Savings of less than a thousandth of the memory are not worth a change.
std::size_t notable_bytes() { return std::max(MiB, memory_use().limit_bytes / 1000); }

std::string interval_text(double low, double high, int pairs) {
  return text(advice_words::fixed(low, 3), " to ", advice_words::fixed(high, 3), " of the time in ", pairs, " pairs");
}
std::string interval_text(const Comparison& times) { return interval_text(times.low(), times.high(), times.pairs()); }
std::string bytes_text(std::size_t before, std::size_t after) {
  return text(advice_words::bytes(after), " in place of ", advice_words::bytes(before));
}
std::string gain_text(const Lever& row) {
  return text("a step takes ", percent(1 - row.seconds_after / row.seconds_before),
              " less: ", interval_text(row.ratio_low, row.ratio_high, row.pairs));
}

bool saves_bytes(std::size_t before, std::size_t after) {
  return static_cast<double>(after) <= fewer_bytes * static_cast<double>(before) && before >= after + notable_bytes();
}

Judgement judge_change(const LeverKind& kind, Lever row, const Comparison& times) {
  const bool saves = saves_bytes(row.bytes_before, row.bytes_after);
  const std::string interval = interval_text(times), bytes = bytes_text(row.bytes_before, row.bytes_after);
  if (row.max_relative_difference > kind.most_difference) {
    row.reason =
        text("losses differ by up to ", percent(row.max_relative_difference), ": it is another training; ", interval);
  } else if (times.gains(kind.least_gain) && row.seconds_after < row.seconds_before) {
    row.verdict = Verdict::worth_it;
    row.reason = gain_text(row);
    if (saves || row.bytes_after > row.bytes_before + notable_bytes()) row.reason += "; it takes " + bytes;
  } else if (saves && !times.is_slower() && times.ratio() < 1 + kind.least_gain) {
    row.verdict = Verdict::worth_it;
    row.reason = text("it takes ", bytes, " at the same speed: ", interval);
  } else if (times.is_slower()) {
    row.reason = text("a step takes ", percent(times.ratio() - 1), " longer: ", interval);
    if (saves) row.reason += text("; it takes ", bytes, ": for when memory is short");
  } else if (times.high() < 1) {
    row.reason = text("it gains less than ", percent(kind.least_gain), ": ", interval);
  } else {
    row.reason = text("a gain lies within the interval: ", interval);
  }
  row.worth_it = row.verdict == Verdict::worth_it;
  const bool adopts = row.worth_it;
  return {std::move(row), adopts};
}

/// `row` is of leaving it.
Judgement judge_leaving(const LeverKind& kind, Lever row, const Comparison& times) {
  const std::string interval = interval_text(times);
  const bool saves = saves_bytes(row.bytes_after, row.bytes_before);
  const std::string bytes = text(" and ", bytes_text(row.bytes_before, row.bytes_after));
  bool adopts = false;
  if (times.is_slower()) {
    row.verdict = Verdict::worth_it;
    row.reason =
        text("in use; without it a step takes ", advice_words::fixed(times.ratio(), 2), " of the time: ", interval);
  } else if (times.gains(kind.least_gain)) {
    adopts = row.max_relative_difference <= kind.most_difference;
    row.reason = text("in use; without it a step takes ", percent(1 - times.ratio()), " less", saves ? bytes : "", ": ",
                      interval);
  } else if (saves) {
    row.verdict = Verdict::worth_it;
    row.reason = text("in use; without it a step takes as long", bytes, ": ", interval);
  } else {
    row.reason = text("in use, and it may stay: without it a step takes ", interval);
  }
  std::swap(row.seconds_before, row.seconds_after);
  std::swap(row.bytes_before, row.bytes_after);
  const double low = std::exchange(row.ratio_low, 1 / row.ratio_high);
  row.ratio_high = low > 0 ? 1 / low : std::numeric_limits<double>::infinity();
  const bool gains = row.seconds_after < row.seconds_before || row.bytes_after < row.bytes_before;
  if (!gains) row.verdict = Verdict::not_worth_it;
  row.worth_it = row.verdict == Verdict::worth_it;
  return {std::move(row), adopts};
}

}  // namespace

Judgement judge(const LeverKind& kind, const Proposal& proposal, bool is_in_use, const Evidence& shown) {
  const Comparison& times = shown.times;
  Lever row{.name = std::string(kind.name),
            .seconds_before = times.median_before(),
            .seconds_after = times.median_after(),
            .bytes_before = shown.bytes_before,
            .bytes_after = shown.bytes_after,
            .max_relative_difference = shown.difference,
            .pairs = times.pairs(),
            .ratio_low = times.low(),
            .ratio_high = times.high(),
            .change = proposal.change,
            .is_in_use = is_in_use,
            .changes_learning = kind.changes_learning()};
  if (times.pairs() >= Comparison::fewest)
    return is_in_use ? judge_leaving(kind, std::move(row), times) : judge_change(kind, std::move(row), times);
  row.verdict = Verdict::undecided;
  row.reason = text("undecided, ", times.pairs(), " pairs: the time was over");
  if (is_in_use) std::swap(row.seconds_before, row.seconds_after), std::swap(row.bytes_before, row.bytes_after);
  return {std::move(row)};
}

Lever joined(const Lever& first, const Lever& then) {
  Lever both = then;
  both.seconds_before = first.seconds_before;
  both.seconds_after = first.seconds_after * (then.seconds_after / then.seconds_before);
  both.bytes_before = first.bytes_before;
  both.ratio_low = first.ratio_low * then.ratio_low;
  both.ratio_high = first.ratio_high * then.ratio_high;
  both.pairs = first.pairs + then.pairs;
  both.max_relative_difference = std::max(first.max_relative_difference, then.max_relative_difference);
  both.reason = gain_text(both);
  return both;
}

}  // namespace gradus
