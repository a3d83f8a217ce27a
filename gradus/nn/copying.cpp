/// The copies made so far.
#include "gradus/nn/copying.h"
#include <algorithm>
#include "gradus/nn/assignment.h"
#include "gradus/nn/layer.h"

namespace gradus {

thread_local Copying* Copying::outermost_ = nullptr;

Copying::Copying() {
  if (!outermost_) outermost_ = this;
}
Copying::~Copying() {
  if (outermost_ == this) outermost_ = nullptr;
}

std::shared_ptr<Layer> Copying::copy_of(const std::shared_ptr<Layer>& layer, const Module& from, const Module& to) {
  if (!layer) return nullptr;
  outermost_->handles_[&from] = &to;
  Copied& known = outermost_->layers_[layer];
  const bool again = std::ranges::find(known.handles, &from) != known.handles.end();
  known.handles.push_back(&from);
  if (known.layer && !again) return known.layer;
  std::shared_ptr<Layer> copy = gradus::copy_of(layer);
  if (!is_inner()) copy->note_source(layer);
  outermost_->layers_[layer].layer = copy;
  return copy;
}

const Module* Copying::copied_to(const Module* from) {
  const auto found = outermost_->handles_.find(from);
  return found == outermost_->handles_.end() ? nullptr : found->second;
}

}  // namespace gradus
