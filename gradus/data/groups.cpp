/// Groups: elements of one key wait until there are as many as a window of that key holds.
#include <map>
#include "gradus/base/error.h"
#include "gradus/data/element_work.h"
#include "gradus/data/pipeline_changes.h"

namespace gradus {
namespace {

class GroupsPass : public ForwardPass {
 public:
  GroupsPass(const ElementWork& key_of, const GroupSize& size_of, const Stage& source, std::int64_t epoch)
      : key_of_(key_of), size_of_(size_of), source_(source), epoch_(epoch) {}

 private:
  struct Group {
    std::int64_t size = 0, elements = 0;
    Tensors fields;  // the key, then those of the elements
  };
  void restart() override {
    pass_ = source_.open(epoch_);
    length_ = source_.length(epoch_);
    index_ = 0;
    groups_.clear();
  }
  Tensors next() override {
    while (index_ < length_) {
      Tensors element = pass_->at(index_);
      if (element.empty()) break;
      const std::int64_t key = integer_of(key_of_.apply(element, epoch_, index_)[0]);
      ++index_;
      Group& group = group_of(key);
      group.fields.insert(group.fields.end(), element.begin(), element.end());
      if (++group.elements == group.size) return std::move(groups_.extract(key).mapped().fields);
    }
    length_ = index_;
    return groups_.empty() ? Tensors() : std::move(groups_.extract(groups_.begin()).mapped().fields);
  }
  Group& group_of(std::int64_t key) {
    Group& group = groups_[key];
    if (!group.fields.empty()) return group;
    group.size = size_of_(key);
    require(group.size > 0, "group_by_window: the window of key ", key, " has the size ", group.size,
            "; expected a positive number of elements");
    Ref<Buffer> number = Buffer::allocate(sizeof key, "key of a group");
    *number->data<std::int64_t>() = key;
    group.fields.push_back(Tensor::of_buffer({i64, {}}, std::move(number)));
    return group;
  }

  const ElementWork& key_of_;
  const GroupSize& size_of_;
  const Stage& source_;
  const std::int64_t epoch_;
  std::unique_ptr<Pass> pass_;
  std::int64_t length_ = 0, index_ = 0;
  std::map<std::int64_t, Group> groups_;  // the rest comes in the order of keys
};

class GroupsStage : public DerivedStage {
 public:
  GroupsStage(const StagePointer& source, std::shared_ptr<const ElementWork> key_of, GroupSize size_of)
      : DerivedStage(source), key_of_(std::move(key_of)), size_of_(std::move(size_of)) {}
  std::string name() const override { return "group_by_window"; }
  bool is_counted() const override { return false; }
  bool repeats_itself() const override { return !key_of_->is_random() && source().repeats_itself(); }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    return std::make_shared<GroupsStage>(sources[0], work_of(key_of_, source(), *sources[0]), size_of_);
  }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<GroupsPass>(*key_of_, size_of_, source(), epoch);
  }

 private:
  const std::shared_ptr<const ElementWork> key_of_;
  const GroupSize size_of_;
};

}  // namespace

StagePointer groups_stage(StagePointer source, const ElementFunction& trace, ElementFunction run, GroupSize size) {
  auto work = std::make_unique<ElementWork>("group_by_window", *source, trace, std::move(run));
  const Spec& key = work->specs()[0];
  require(is_integer(key.dtype) && key.shape.rank() == 0, "group_by_window: the key of an element is ", key,
          ", expected a scalar integer");
  return std::make_shared<GroupsStage>(source, std::move(work), std::move(size));
}

}  // namespace gradus
