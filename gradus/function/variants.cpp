/// Choosing among variants, counting them, letting them go.
#include "gradus/function/variants.h"
#include <algorithm>
#include <mutex>
#include "gradus/base/notice.h"
#include "gradus/compiler/pipeline.h"
#include "gradus/function/open_sizes.h"

namespace gradus {
namespace {

std::atomic<std::size_t> limit_bytes{std::size_t{512} << 20};
constexpr int warn_at_variants = 8;

}  // namespace

std::size_t set_variants_limit(std::size_t bytes) { return limit_bytes.exchange(bytes); }

std::int64_t FunctionSetup::budget() const {
  return is_disabled(options.disable, "recompute") ? 0 : static_cast<std::int64_t>(options.max_bytes);
}

// ---------------------------------------------------------------- which one serves a call

bool Variants::is_valid(Variant& variant, const std::vector<std::int64_t>& symbols) const {
  bool fits = variant.watched.holds(variant.watched_until);
  if (setup_.budget() > 0 && !symbols.empty())
    for_each_segment(*variant.root, [&](const Segment& segment) {
      fits = fits && segment.program->compiled().temporary_bytes(symbols) <= setup_.budget();
    });
  return fits;
}

std::shared_ptr<Variant> Variants::find(const Signature& call, std::vector<std::int64_t>& symbols) const {
  std::shared_lock lock(guard_);
  for (auto it = variants_.rbegin(); it != variants_.rend(); ++it)
    if (auto found = match((*it)->pattern, call);
        found && is_valid(**it, *found) && (found->empty() || !(*it)->unfit.contains(*found))) {
      symbols = std::move(*found);
      return *it;
    }
  return nullptr;
}

// ---------------------------------------------------------------- why there is one more

std::string Variants::reason_for(const Signature& call) const {
  std::shared_lock lock(guard_);
  const std::string sizes = examples_.empty() ? "" : difference(examples_.back(), call);
  const auto unfit = std::ranges::find_if(variants_.rbegin(), variants_.rend(), [&](const auto& variant) {
    return match(variant->pattern, call).has_value();
  });
  if (unfit == variants_.rend()) return sizes;
  if ((*unfit)->unfit.contains(match((*unfit)->pattern, call).value())) return sizes;
  const std::string changes = (*unfit)->watched.difference();
  return changes.empty() ? sizes + " (what is compiled would not stay within max_bytes at these sizes)" : changes;
}

Signature Variants::next_pattern(const Signature& call) const {
  std::shared_lock lock(guard_);
  check_number();
  if (!setup_.options.open_sizes) return call;
  return generalize(examples_, call, setup_.options.input_signature);
}

void Variants::check_number() const {
  if (setup_.options.evict_variants || variants_.size() < max_variants()) return;
  std::string reasons;
  for (const Retrace& retrace : retraces_) reasons += text("\n  variant ", retrace.variant, ": ", retrace.reason);
  // The signature of the library's own functions is that of the data: the user cannot write it.
  const char* remedy = setup_.options.fixes_sizes
                           ? "let the data have fewer shapes, as padded_batch and bucket_by_sequence_length make them"
                       : setup_.options.input_signature.empty()
                           ? "mark sizes that vary as any_size in input_signature, pass numbers that vary as tensors"
                           : "pass numbers that vary as tensors";
  throw ResourceExhausted(text(setup_.title, ": more than ", setup_.options.max_variants, " variants; ", remedy,
                               ", or raise max_variants. They were made because:", reasons));
}

bool Variants::is_one_of_too_many(const Signature& call) {
  std::unique_lock lock(guard_);
  const auto alike = [&](const Signature& s) { return is_same_kind(s, call); };
  const auto lasts = [](const std::shared_ptr<Variant>& variant) { return !variant->watched.is_over(); };
  if (setup_.options.evict_variants || std::ranges::count_if(variants_, lasts) < setup_.options.max_variants ||
      std::ranges::none_of(needing_sizes_, alike))
    return false;
  if (!std::exchange(warned_of_op_by_op_, true))
    notice(going_op_by_op(setup_.title, variants_.size(), retraces_.back().reason));
  return true;
}

void Variants::note_needing_sizes(const Signature& call) {
  std::unique_lock lock(guard_);
  const auto alike = [&](const Signature& s) { return is_same_kind(s, call); };
  if (std::ranges::none_of(needing_sizes_, alike)) needing_sizes_.push_back(call);
}

// ---------------------------------------------------------------- coming and going

void Variants::admit(std::shared_ptr<Variant> variant, const std::string& reason, double took) {
  std::unique_lock lock(guard_);
  warn_of_captures(*variant->root);
  if (!reason.empty()) retraces_.push_back({made_, reason});
  examples_.push_back(variant->example);
  use(*variant);
  variants_.push_back(std::move(variant));
  compile_seconds_ += took;
  if (++made_ == warn_at_variants)
    notice(text("gradus: ", setup_.title, " has been traced ", made_, " times, the last time because ",
                retraces_.back().reason, "; explain() lists all reasons\n"));
  evict();
}

void Variants::note_path(Variant& variant, const Segment& begin, double took) {
  ++variant.paths;
  variant.memory_bytes = variant.memory->bytes();
  std::unique_lock counted(guard_);
  warn_of_captures(begin);
  compile_seconds_ += took;
  evict();
}

void Variants::add_watched(Variant& variant, const WatchedState& watched) {
  std::unique_lock lock(guard_);
  variant.watched.add(watched);
  variant.watched_until = 0;
}

/// Keeps the newest, and the most recently used of the others.
void Variants::evict() {
  std::size_t bytes = 0;
  for (const auto& known : variants_) bytes += footprint(*known);
  const auto are_too_many = [&] { return setup_.options.evict_variants && variants_.size() > max_variants(); };
  while ((bytes > limit_bytes || are_too_many()) && variants_.size() > 1) {
    const auto oldest = std::ranges::min_element(variants_.begin(), variants_.end() - 1, {},
                                                 [](const auto& known) { return known->last_use.load(); });
    bytes -= footprint(**oldest);
    variants_.erase(oldest);
  }
  if (!setup_.options.evict_variants) return;
  // Where any number of variants comes and goes, their history is that of the last ones.
  const std::size_t most = std::max<std::size_t>(16, 2 * max_variants());
  if (examples_.size() > most) examples_.erase(examples_.begin(), examples_.end() - static_cast<std::ptrdiff_t>(most));
  if (retraces_.size() > most) retraces_.erase(retraces_.begin(), retraces_.end() - static_cast<std::ptrdiff_t>(most));
}

void Variants::retire(const Variant& variant) {
  std::shared_ptr<Variant> released;  // after the lock
  std::unique_lock lock(guard_);
  const auto known = std::ranges::find(variants_, &variant, [](const auto& v) { return v.get(); });
  if (known == variants_.end()) return;
  released = std::move(*known);
  variants_.erase(known);
}

void Variants::retire_outdated() {
  std::vector<std::shared_ptr<Variant>> released;  // after the lock
  std::unique_lock lock(guard_);
  std::erase_if(variants_, [&](const std::shared_ptr<Variant>& variant) {
    if (!variant->watched.is_over()) return false;
    released.push_back(variant);
    return true;
  });
}

/// Constants stay in memory as long as the variant, and another value of them is never seen: large ones are reported,
/// once.
void Variants::warn_of_captures(const Segment& root) {
  for_each_segment(root, [&](const Segment& segment) {
    for (const auto& [number, what] : segment.large_captures)
      if (warned_captures_.insert(number).second)
        notice(text("gradus: ", setup_.title, " has captured a tensor ", what,
                    ": a constant from now on; pass it as an argument or make it a Variable if it changes\n"));
  });
}

void Variants::explain(Explanation& e) const {
  std::shared_lock lock(guard_);
  e.retraces = retraces_;
  e.variants = static_cast<int>(variants_.size());
  if (!variants_.empty()) describe(*variants_.back(), e);
  e.compile_seconds = compile_seconds_;
  for (const auto& variant : variants_) {
    e.paths += variant->paths;
    for_each_segment(*variant->root, [&](const Segment& s) { e.compile_seconds += s.program->later_seconds(); });
  }
}

}  // namespace gradus
