/// Reading without translation, and the stages that only choose: windows, rounds, starts.
#include "gradus/data/stage.h"
#include <algorithm>
#include <cstring>

namespace gradus {

bool has_any_size(const Spec& spec) { return std::ranges::count(spec.shape, any_size) > 0; }
bool have_any_size(const std::vector<Spec>& specs) { return std::ranges::any_of(specs, has_any_size); }

void Pass::write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const Tensors element = at(indices[i]);
    for (std::size_t field = 0; field < out.size(); ++field) {
      const std::size_t bytes = element[field].bytes();
      if (bytes > 0) std::memcpy(out[field] + i * bytes, element[field].observed().data(), bytes);
    }
  }
}

namespace {

class WindowPass : public Pass {
 public:
  WindowPass(std::unique_ptr<Pass> source, std::int64_t begin) : source_(std::move(source)), begin_(begin) {}
  Tensors at(std::int64_t index) override { return source_->at(begin_ + index); }
  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) override {
    moved_.assign(indices.begin(), indices.end());
    for (std::int64_t& index : moved_) index += begin_;
    source_->write(moved_, out);
  }

 private:
  std::unique_ptr<Pass> source_;
  std::int64_t begin_;
  std::vector<std::int64_t> moved_;
};

class WindowStage : public DerivedStage {
 public:
  WindowStage(StagePointer source, std::int64_t begin, std::int64_t count)
      : DerivedStage(source), begin_(begin), count_(count) {}
  std::int64_t length(std::int64_t epoch) const override {
    return std::min(count_, std::max(source().length(epoch) - begin_, std::int64_t{0}));
  }
  bool is_endless() const override { return source().is_endless() && count_ == endless_length; }
  std::unique_ptr<Pass> open(std::int64_t epoch) const override {
    return std::make_unique<WindowPass>(source().open(epoch), begin_);
  }

 private:
  const std::int64_t begin_, count_;
};

/// Which epoch of the source is meant.
class StartStage : public DerivedStage {
 public:
  StartStage(StagePointer source, Position start, bool same_epoch)
      : DerivedStage(source), start_(start), same_epoch_(same_epoch) {}
  std::int64_t length(std::int64_t epoch) const override {
    return std::max(source().length(epoch_of(epoch)) - first_of(epoch), std::int64_t{0});
  }
  std::unique_ptr<Pass> open(std::int64_t epoch) const override {
    return std::make_unique<WindowPass>(source().open(epoch_of(epoch)), first_of(epoch));
  }

 private:
  std::int64_t epoch_of(std::int64_t epoch) const { return start_.epoch + (same_epoch_ ? 0 : epoch); }
  std::int64_t first_of(std::int64_t epoch) const { return epoch == 0 || same_epoch_ ? start_.index : 0; }
  const Position start_;
  const bool same_epoch_;
};

/// Rounds one behind the other. Only the first one may have another length (a start within an epoch).
class RepeatPass : public Pass {
 public:
  RepeatPass(const Stage& source, std::int64_t epoch)
      : source_(source), epoch_(epoch), first_(source.length(epoch)), length_(source.length(epoch + 1)) {}
  Tensors at(std::int64_t index) override {
    const Place place = place_of(index);
    return round(place.round).at(place.index);
  }
  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) override {
    std::vector<std::byte*> ends(out.begin(), out.end());
    for (std::size_t i = 0; i < indices.size();) {
      const std::int64_t current = place_of(indices[i]).round;
      within_.clear();
      for (Place place; i < indices.size() && (place = place_of(indices[i])).round == current; ++i)
        within_.push_back(place.index);
      round(current).write(within_, ends);
      for (std::size_t field = 0; field < ends.size(); ++field)
        ends[field] += static_cast<std::int64_t>(within_.size()) * bytes_of(source_.specs()[field]);
    }
  }

 private:
  struct Place {
    std::int64_t round, index;
  };
  Place place_of(std::int64_t index) const {
    if (index < first_) return {0, index};
    return {1 + (index - first_) / length_, (index - first_) % length_};
  }
  Pass& round(std::int64_t number) {
    if (!pass_ || number != number_) pass_ = source_.open(epoch_ + number);
    number_ = number;
    return *pass_;
  }

  const Stage& source_;
  const std::int64_t epoch_, first_, length_;
  std::unique_ptr<Pass> pass_;
  std::int64_t number_ = 0;
  std::vector<std::int64_t> within_;
};

/// Epoch e of it begins where epoch e - 1 ended; one without end begins a round later.
class RepeatStage : public DerivedStage {
 public:
  RepeatStage(StagePointer source, std::optional<std::int64_t> times) : DerivedStage(source), times_(times) {}
  std::int64_t length(std::int64_t epoch) const override {
    if (times_ == 0) return 0;
    const std::int64_t round = source().length(first_epoch(epoch) + 1);
    if (!times_) return round > 0 ? endless_length : 0;
    return source().length(first_epoch(epoch)) + (*times_ - 1) * round;
  }
  bool is_endless() const override { return !times_ && source().length(1) > 0; }
  std::unique_ptr<Pass> open(std::int64_t epoch) const override {
    return std::make_unique<RepeatPass>(source(), first_epoch(epoch));
  }

 private:
  /// A number of any size will do, so it may wrap around.
  std::int64_t first_epoch(std::int64_t epoch) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(epoch) *
                                     static_cast<std::uint64_t>(times_.value_or(1)));
  }
  const std::optional<std::int64_t> times_;
};

}  // namespace

StagePointer window_stage(StagePointer source, std::int64_t begin, std::int64_t count) {
  return std::make_shared<WindowStage>(std::move(source), begin, count);
}
StagePointer repeat_stage(StagePointer source, std::optional<std::int64_t> times) {
  return std::make_shared<RepeatStage>(std::move(source), times);
}
StagePointer start_stage(StagePointer source, Position start, bool same_epoch) {
  return std::make_shared<StartStage>(std::move(source), start, same_epoch);
}

}  // namespace gradus
