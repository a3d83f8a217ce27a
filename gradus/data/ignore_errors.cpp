/// Elements that cannot be made are left out.
#include "gradus/base/error.h"
#include "gradus/base/notice.h"
#include "gradus/base/rooms.h"
#include "gradus/data/pipeline_changes.h"
#include "gradus/data/stage.h"

namespace gradus {
namespace {

/// A mistake in one element. Others would come again with every element.
bool is_of_element(const std::exception& error) {
  return !dynamic_cast<const ResourceExhausted*>(&error) && !dynamic_cast<const Diverged*>(&error) &&
         !dynamic_cast<const InternalError*>(&error);
}

class WithoutErrorsPass : public ForwardPass {
 public:
  WithoutErrorsPass(const Stage& source, std::int64_t epoch, bool log_warning)
      : source_(source), epoch_(epoch), log_warning_(log_warning) {}

 private:
  void restart() override {
    pass_ = source_.open(epoch_);
    length_ = source_.length(epoch_);
    index_ = 0;
    last_error_.clear();
  }
  Tensors next() override {
    while (index_ < length_) {
      try {
        Tensors element = pass_->at(index_++);
        last_error_.clear();
        return element;
      } catch (const std::exception& error) {
        if (!is_of_element(error)) throw;
        refuse_what_cannot_go_on(error);
      }
    }
    return {};
  }
  /// A stage that reads in order fails again at the same place: no element behind it can be reached.
  void refuse_what_cannot_go_on(const std::exception& error) {
    const std::string message = error.what();
    if (!source_.is_counted() && message == last_error_) throw;
    if (log_warning_) notice(text("gradus: ignore_errors: an element is left out: ", message, '\n'));
    last_error_ = message;
  }
  const Stage& source_;
  const std::int64_t epoch_;
  const bool log_warning_;
  std::unique_ptr<Pass> pass_;
  std::int64_t length_ = 0, index_ = 0;
  std::string last_error_;  // of the element before
};

class WithoutErrorsStage : public DerivedStage {
 public:
  WithoutErrorsStage(const StagePointer& source, bool log_warning) : DerivedStage(source), log_warning_(log_warning) {}
  std::string name() const override { return "ignore_errors"; }
  bool is_counted() const override { return false; }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    return std::make_shared<WithoutErrorsStage>(sources[0], log_warning_);
  }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<WithoutErrorsPass>(source(), epoch, log_warning_);
  }

 private:
  const bool log_warning_;
};

}  // namespace

StagePointer ignore_errors_stage(StagePointer source, bool log_warning) {
  return std::make_shared<WithoutErrorsStage>(source, log_warning);
}

}  // namespace gradus
