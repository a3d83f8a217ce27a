/// The table of masks, and finding where one was lost. Decision 340 has the reasons.
#include "gradus/graph/mask.h"
#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <unordered_map>
#include "gradus/base/hash.h"
#include "gradus/graph/context.h"

namespace gradus {
namespace {

/// The note on a node: its mask, or, without one, that it was lost.
struct Note {
  Ref<Node> mask = {};
  int places = 2;  // number of first dimensions that the mask covers; 1 if batch and time are one dimension
};

/// Nodes with a note. Most nodes have none, which a counter shows without the lock.
class Notes {
 public:
  static Notes& instance() {
    static auto* only = new Notes;  // nodes may die after all other statics
    return *only;
  }
  std::optional<Note> find(const Node& node) {
    if (may_not_have(node)) return {};
    const std::lock_guard lock(guard_);
    const auto found = notes_.find(&node);
    return found == notes_.end() ? std::optional<Note>() : found->second;
  }
  void set(const Node& node, Note note) {
    const std::lock_guard lock(guard_);
    const auto [place, is_new] = notes_.try_emplace(&node);
    std::swap(place->second, note);
    if (is_new) count_of(node).fetch_add(1, std::memory_order_relaxed);
  }
  void forget(const Node& node) {
    if (may_not_have(node)) return;
    Note released;  // destroyed after the lock is released
    const std::lock_guard lock(guard_);
    const auto found = notes_.find(&node);
    if (found == notes_.end()) return;
    std::swap(found->second, released);
    notes_.erase(found);
    count_of(node).fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  /// A thread that holds a node sees every note that was made before it received the node.
  bool may_not_have(const Node& node) { return count_of(node).load(std::memory_order_relaxed) == 0; }
  std::atomic<std::uint32_t>& count_of(const Node& node) {
    return counts_[mix(reinterpret_cast<std::uintptr_t>(&node), 0) % counts_.size()];
  }
  std::mutex guard_;
  std::unordered_map<const Node*, Note> notes_;
  std::array<std::atomic<std::uint32_t>, 4096> counts_{};  // nodes with a note, by the hash of their address
};

std::int64_t product_of_first(const Shape& shape, int count) {
  std::int64_t product = 1;
  for (int axis = 0; axis < count; ++axis) product = dimension::multiply(product, shape[axis]);
  return product;
}
bool starts_like(const Shape& made, const Shape& given, int places) {
  if (made.rank() < places || given.rank() < places) return false;
  for (int axis = 0; axis < places; ++axis)
    if (made[axis] != given[axis]) return false;
  return true;
}

/// For a view or a reshape: batch and time may become one dimension, or two again, and a part of the batch or of the
/// time may be taken.
int places_in_view(const Shape& made, const Shape& given, int places) {
  for (const int count : {2, 1})
    if (made.rank() >= count && product_of_first(made, count) == product_of_first(given, places)) return count;
  const auto is_part_along = [&](int axis) {
    Shape whole = made;
    whole.set(axis, given[axis]);
    return whole == given;
  };
  return places == 2 && made.rank() == given.rank() && (is_part_along(0) || is_part_along(1)) ? 2 : 0;
}

/// The number of first dimensions of `made` that have the places of operand i, which has them in `places`; 0: none.
int places_from(const Node& made, In inputs, std::size_t i, int places) {
  const Shape &shape = made.spec.shape, &given = inputs[i].spec().shape;
  if (given.rank() < places) return 0;
  if (made.op.is_alias() && i > 0) return 0;  // further operands of an alias only run before it
  if (made.op.is_view() || made.op.is_alias()) return places_in_view(shape, given, places);
  if (!starts_like(shape, given, places)) return 0;
  if (!made.op.is_library_call() || !made.op->carries) return places;
  std::vector<const Spec*> specs;
  for (const Tensor& input : inputs) specs.push_back(&input.spec());
  for (int axis = 0; axis < places; ++axis) {
    const int carried = made.op->carries(made.op.attributes(), Specs(std::span<const Spec* const>(specs)),
                                         static_cast<int>(i), axis - given.rank());
    if (carried != axis - shape.rank()) return 0;
  }
  return places;
}

/// The value that carries the note on x across a border: its mask, or, for a lost one, a value without dimensions.
Tensor noted_of(const Tensor& x) {
  const std::optional<Note> note = x.defined() ? Notes::instance().find(*x.node()) : std::nullopt;
  if (!note) return {};
  if (note->mask) return Tensor(note->mask);
  Ref<Buffer> buffer = Buffer::allocate(sizeof(bool));
  *buffer->data<bool>() = true;
  const Tensor lost = Tensor::of_buffer({boolean, {}}, std::move(buffer));
  return Context::current() ? Context::current()->literal(lost) : lost;
}

}  // namespace

std::atomic<bool> SequenceMask::used_{false};

Tensor SequenceMask::of(const Tensor& x) {
  if (!is_used() || !x.defined()) return {};
  return Tensor(Notes::instance().find(*x.node()).value_or(Note()).mask);
}

Node* SequenceMask::of(const Node& node) { return Notes::instance().find(node).value_or(Note()).mask.get(); }

void SequenceMask::set(const Tensor& x, const Tensor& places) {
  if (!places.defined()) return Notes::instance().forget(*x.node());
  used_.store(true, std::memory_order_relaxed);
  Notes::instance().set(*x.node(), {places.node(), std::min(2, places.shape().rank())});
}

bool SequenceMask::is_lost(const Tensor& x) {
  if (!is_used() || !x.defined()) return false;
  const std::optional<Note> note = Notes::instance().find(*x.node());
  return note && !note->mask;
}

void SequenceMask::lose(const Tensor& x) { Notes::instance().set(*x.node(), {}); }

void SequenceMask::follow(const Tensor& y, const Tensor& x) {
  Notes& notes = Notes::instance();
  const std::optional<Note> note = is_used() ? notes.find(*x.node()) : std::nullopt;
  if (note && !note->mask && starts_like(y.shape(), x.shape(), note->places)) notes.set(*y.node(), *note);
  else if (is_lost(y)) notes.forget(*y.node());
}

std::string SequenceMask::lost_by(const Tensor& x) {
  Notes& notes = Notes::instance();
  for (const Node* node = x.node().get(); node->op;) {
    const auto from = std::ranges::find_if(node->inputs, [&](const Ref<Node>& each) { return !!notes.find(*each); });
    if (from == node->inputs.end()) break;
    if (notes.find(**from)->mask) return std::string(node->op->name);
    node = from->get();
  }
  return {};
}

void SequenceMask::made(const Ref<Node>& node, In inputs) {
  if (node->spec.shape.rank() == 0) return;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::optional<Note> note = Notes::instance().find(*inputs[i].node());
    const int places = note ? places_from(*node, inputs, i, note->places) : 0;
    if (places > 0) return Notes::instance().set(*node, {.places = places});
  }
}

void SequenceMask::forget(const Node& node) { Notes::instance().forget(node); }

void SequenceMask::append_all(std::vector<Tensor>& tensors) {
  if (!is_used()) return;
  std::vector<Tensor> all;
  for (const Tensor& x : tensors) all.push_back(noted_of(x));
  if (std::ranges::any_of(all, &Tensor::defined)) tensors.insert(tensors.end(), all.begin(), all.end());
}

std::vector<std::size_t> SequenceMask::append_some(std::vector<Tensor>& tensors) {
  std::vector<std::size_t> places;
  const std::size_t count = is_used() ? tensors.size() : 0;
  for (std::size_t i = 0; i < count; ++i) {
    Tensor each = noted_of(tensors[i]);
    if (!each.defined()) continue;
    places.push_back(i);
    tensors.push_back(std::move(each));
  }
  return places;
}

void SequenceMask::give(const Tensor& x, const Tensor& noted) {
  if (!x.defined() || !noted.defined()) return;
  if (noted.shape().rank() > 0) set(x, noted);
  else lose(x);
}

}  // namespace gradus
