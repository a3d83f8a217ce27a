/// Windows: elements that belong together, read from the source once. To whoever reads one it is the fields of all its
/// elements, one after the other.
#include <algorithm>
#include "gradus/data/pipeline_changes.h"
#include "gradus/data/stage.h"

namespace gradus {

std::int64_t WindowShape::count(std::int64_t n) const {
  if (!drop_remainder) return n / shift + (n % shift != 0);
  return n < span() ? 0 : (n - span()) / shift + 1;
}

std::int64_t WindowShape::size_of(std::int64_t index, std::int64_t n) const {
  return std::min(size, (n - index * shift - 1) / stride + 1);
}

WindowElements::WindowElements(const Stage& source, std::int64_t epoch, WindowShape shape)
    : shape_(shape), counted_(source.is_counted()), length_(source.length(epoch)), source_(source.open(epoch)) {}

std::vector<Tensors> WindowElements::at(std::int64_t index) {
  std::int64_t first = 0;
  if (__builtin_mul_overflow(index, shape_.shift, &first) || first > endless_length - shape_.span()) return {};
  held_.erase(held_.begin(), held_.lower_bound(first));
  std::vector<Tensors> elements;
  // Where elements come in order, those between the elements of this window may be ones of the next.
  const std::int64_t step = counted_ ? shape_.stride : 1;
  for (std::int64_t i = first; i < first + shape_.span() && hold(i); i += step)
    if ((i - first) % shape_.stride == 0) elements.push_back(held_.at(i));
  const bool is_whole = std::ssize(elements) == shape_.size;
  return is_whole || !shape_.drop_remainder ? elements : std::vector<Tensors>();
}

/// False past the end.
bool WindowElements::hold(std::int64_t index) {
  if (held_.contains(index)) return true;
  Tensors element = index < length_ ? source_->at(index) : Tensors();
  if (element.empty()) return false;
  held_.emplace(index, std::move(element));
  return true;
}

namespace {

Tensors fields_of(const std::vector<Tensors>& elements) {
  Tensors fields;
  for (const Tensors& element : elements) fields.insert(fields.end(), element.begin(), element.end());
  return fields;
}

class WindowsPass : public Pass {
 public:
  WindowsPass(const Stage& source, std::int64_t epoch, const WindowShape& shape) : elements_(source, epoch, shape) {}
  Tensors at(std::int64_t index) override { return fields_of(elements_.at(index)); }

 private:
  WindowElements elements_;
};

class WindowsStage : public DerivedStage {
 public:
  WindowsStage(const StagePointer& source, const WindowShape& shape) : DerivedStage(source), shape_(shape) {}
  std::string name() const override {
    return text("window(", shape_.size, ", ", shape_.shift, ", ", shape_.stride, ")");
  }
  std::uint64_t identity() const override { return shape_.drop_remainder; }
  std::int64_t length(std::int64_t epoch) const override { return shape_.count(source().length(epoch)); }
  std::optional<RowLayout> layout(std::int64_t) const override { return {}; }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    return std::make_shared<WindowsStage>(sources[0], shape_);
  }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<WindowsPass>(source(), epoch, shape_);
  }

 private:
  const WindowShape shape_;
};

class HeldPass : public Pass {
 public:
  explicit HeldPass(const std::vector<Tensors>& elements) : elements_(elements) {}
  Tensors at(std::int64_t index) override { return elements_[static_cast<std::size_t>(index)]; }

 private:
  const std::vector<Tensors>& elements_;
};

class HeldStage : public Stage {
 public:
  HeldStage(std::vector<Spec> specs, std::optional<int> batchings, std::vector<Tensors> elements)
      : Stage(std::move(specs)), batchings_(batchings), elements_(std::move(elements)) {}
  std::string name() const override { return "elements of a window"; }
  std::optional<int> batchings() const override { return batchings_; }
  std::int64_t length(std::int64_t) const override { return std::ssize(elements_); }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t) const override { return std::make_unique<HeldPass>(elements_); }

 private:
  const std::optional<int> batchings_;
  const std::vector<Tensors> elements_;
};

}  // namespace

StagePointer windows_stage(StagePointer source, WindowShape shape) {
  return std::make_shared<WindowsStage>(source, shape);
}

StagePointer held_stage(std::vector<Spec> specs, std::optional<int> batchings, std::vector<Tensors> elements) {
  return std::make_shared<HeldStage>(std::move(specs), batchings, std::move(elements));
}

}  // namespace gradus
