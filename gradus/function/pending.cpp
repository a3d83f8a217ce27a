/// The queue of one thread: plan (yielded values, dying ones, the key), run, commit.
#include "gradus/function/pending.h"
#include <algorithm>
#include <unordered_map>
#include "gradus/base/floating_point_state.h"
#include "gradus/base/long_work.h"
#include "gradus/base/of_thread.h"
#include "gradus/base/thread_pool.h"
#include "gradus/function/leaf_table.h"
#include "gradus/function/program_cache.h"
#include "gradus/function/resident.h"
#include "gradus/graph/context.h"
#include "gradus/graph/flatten_in_order.h"
#include "gradus/graph/mask.h"
#include "gradus/tensor/borrowed.h"

namespace gradus {

/// All queues that ever were. A queue whose thread has ended serves the next new thread; its pending values stay
/// computable by their holders.
struct QueueRegistry {
  std::mutex guard;
  std::vector<std::unique_ptr<Pending>> all;
  std::vector<Pending*> idle;

  static QueueRegistry& instance() {
    static auto* only = new QueueRegistry;
    return *only;
  }
  Pending* take(Placement device, Pending* first) {
    Pending* queue = next();
    queue->adopt(device, first);  // another thread may flush it for long
    return queue;
  }
  Pending* next() {
    std::lock_guard lock(guard);
    if (idle.empty()) {
      all.push_back(std::make_unique<Pending>());
      all.back()->number_ = static_cast<std::uint32_t>(all.size());
      return all.back().get();
    }
    Pending* queue = idle.back();
    idle.pop_back();
    return queue;
  }
  void give_back(Pending* queue) {
    queue->orphan();
    std::lock_guard lock(guard);
    idle.push_back(queue);
  }
};

namespace {

constexpr std::size_t max_pending_nodes = 8192;

/// A node whose flush failed waits nowhere, and every thread that looks at it may let it wait again: one at a time, so
/// that it waits in one queue. Locked before the guard of a queue.
std::mutex failed_guard;

Spec without_device(const Spec& spec) { return {spec.dtype, spec.shape}; }

/// From now on `node`, which is computed, is a leaf. Its operands go to `released`.
void end_history(Node& node, std::vector<Ref<Node>>& released) {
  for (const Ref<Node>& operand : node.inputs) released.push_back(operand);
  node.inputs = {};
  node.op = {};
}

/// The queues of one thread.
struct Lease {
  Pending& first = *QueueRegistry::instance().take(Placement().resolved(), nullptr);
  std::vector<std::pair<Placement, Pending*>> others;  // of further devices

  Lease() = default;
  Lease(const Lease&) = delete;
  ~Lease() {
    QueueRegistry::instance().give_back(&first);
    for (const auto& [device, queue] : others) QueueRegistry::instance().give_back(queue);
  }
  Pending& of(Placement device) {
    for (const auto& [known, queue] : others)
      if (known == device) return *queue;
    return *others.emplace_back(device, QueueRegistry::instance().take(device, &first)).second;
  }
};

void for_each_own_queue(const auto& visit) {
  Lease& lease = OfThread<Lease>::get();
  visit(lease.first);
  for (const auto& [device, queue] : lease.others) visit(*queue);
}

}  // namespace

namespace detail::inline rooms {

/// One flush. Its vectors are kept by the thread from flush to flush.
struct Pending::Plan {
  bool by_owner = true;
  std::vector<Node*> live;                      // to be computed, operands first
  std::vector<std::uint32_t> uses;              // per live node: its number of uses by live nodes
  std::vector<char> yields;                     // per live node
  std::vector<std::pair<Node*, Node*>> masked;  // live nodes, and their masks, which wait too
  std::vector<Node*> leaves;
  std::vector<std::uint32_t> leaf_uses;
  std::vector<char> dying;  // per leaf
  std::vector<std::uint64_t> key;
  std::vector<Ref<Buffer>> inputs, outputs;
  std::vector<Ref<Node>> released;  // let go after the guard is unlocked
  LeafTable table;

  void reset(bool owner) {
    by_owner = owner;
    live.clear();
    uses.clear();
    yields.clear();
    masked.clear();
    leaves.clear();
    leaf_uses.clear();
    dying.clear();
    key.clear();
    inputs.clear();
    outputs.clear();
    table.clear();
  }
  int leaf(Node* node) {
    const int position = table.find_or_add(node, static_cast<int>(leaves.size()));
    if (position == static_cast<int>(leaves.size())) {
      leaves.push_back(node);
      leaf_uses.push_back(0);
    }
    ++leaf_uses[static_cast<std::size_t>(position)];
    return position;
  }
  Graph graph() const;
  /// All pending nodes, except those about to be forgotten.
  void take(std::vector<Node*>& nodes) {
    for (Node* node : nodes) {
      if (!node) continue;
      if (node->refs.load(std::memory_order_acquire) == 0) {  // another thread waits in forget() to free it
        node->queue.store(nullptr, std::memory_order_release);
        continue;
      }
      node->position = static_cast<std::uint32_t>(live.size());
      live.push_back(node);
    }
    nodes.clear();
    uses.resize(live.size());
  }
  void add_to_key(const Node& node) {
    key.push_back(reinterpret_cast<std::uintptr_t>(node.op.record()));
    key.push_back(static_cast<std::uint64_t>(node.inputs.size()));
    for (const Ref<Node>& operand : node.inputs) {
      if (operand->value) {
        key.push_back(2 * static_cast<std::uint64_t>(leaf(operand.get())) + 1);
      } else {
        ++uses[operand->position];
        key.push_back(2 * std::uint64_t{operand->position});
      }
    }
  }
  void add_to_key(const Spec& spec) {
    key.push_back(static_cast<std::uint64_t>(spec.dtype) | static_cast<std::uint64_t>(spec.shape.rank()) << 8);
    for (std::int64_t d : spec.shape) key.push_back(static_cast<std::uint64_t>(d));
  }
};

}  // namespace detail::inline rooms

/// Leaves first, then computed nodes.
Graph Pending::Plan::graph() const {
  Graph graph = flatten_in_order(leaves, live);
  for (Value& v : graph.values) v.spec = without_device(v.spec);  // of one device, which it does not name
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (dying[i]) graph.dying.push_back(graph.inputs[i]);
  for (std::size_t i = 0; i < live.size(); ++i)
    if (yields[i]) graph.outputs.push_back(static_cast<int>(leaves.size() + i));
  return graph;
}

Pending& Pending::mine() { return OfThread<Lease>::get().first; }

Pending& Pending::mine(Placement placement) {
  Lease& lease = OfThread<Lease>::get();
  const Placement device = placement.resolved();
  return device == lease.first.device_ ? lease.first : lease.of(device);
}

std::vector<Pending*> Pending::all() {
  std::vector<Pending*> queues;
  std::lock_guard lock(QueueRegistry::instance().guard);
  for (const auto& queue : QueueRegistry::instance().all) queues.push_back(queue.get());
  return queues;
}

void Pending::flush_mine() {
  for_each_own_queue([](Pending& queue) { queue.flush(); });
}

void Pending::flush_all() {
  for (Pending* queue : all()) queue->flush();
}

void Pending::flush_assigning(const VariableCell& cell) {
  for (Pending* queue : all())
    if (queue->assigns(cell)) queue->flush();
}

bool Pending::assigns(const VariableCell& cell) {
  std::lock_guard lock(guard_);
  return std::ranges::any_of(assigned_, [&](const auto& known) { return known.get() == &cell; });
}

/// Puts `node` and whatever of its history waits nowhere, as a flush failed, at the end of the queue. Returns an
/// operand that has to be computed before, since it waits in another queue or belongs there; null if there is none.
Ref<Node> Pending::admit(const Ref<Node>& node) {
  std::lock_guard one(failed_guard);
  std::lock_guard lock(guard_);
  // The queue is looked at before the value: a queue that has computed a node sets the value, then lets go of the node.
  if (node->queue.load(std::memory_order_acquire) || node->value) return {};  // by another thread
  internal_check(static_cast<bool>(node->op), "a leaf has no value");
  std::vector<std::pair<Node*, int>> stack{{node.get(), 0}};
  while (!stack.empty()) {
    auto& [top, next] = stack.back();
    if (next < top->inputs.size()) {
      Node* operand = top->inputs[next++].get();
      const Pending* queue = operand->queue.load(std::memory_order_acquire);
      if (queue == this || (!queue && (operand->value || !operand->op))) continue;
      if (queue || operand->op.is_copy() || operand->spec.device.resolved() != device_) return Ref<Node>(operand);
      stack.emplace_back(operand, 0);
      continue;
    }
    if (!top->queue.load(std::memory_order_relaxed)) {
      top->position = static_cast<std::uint32_t>(nodes_.size());
      top->recorder.store(number(), std::memory_order_relaxed);
      top->queue.store(this, std::memory_order_release);
      nodes_.push_back(top);
    }
    stack.pop_back();
  }
  return {};
}

void Pending::admit_with_history(const Ref<Node>& node) {
  while (const Ref<Node> before = admit(node)) LazyEvaluation::observe(*before);
}

void Pending::record(const Ref<Node>& node) {
  node->recorder.store(number(), std::memory_order_relaxed);
  ++first_->recorded_;
  if (node->op.is_copy()) return copy_now(node);
  for (const Ref<Node>& operand : node->inputs) {
    if (operand->value) continue;
    Pending* queue = operand->queue.load(std::memory_order_acquire);
    if (queue && queue != this) queue->flush();
  }
  bool full = false, ready = true;
  std::vector<Ref<Node>> released;  // after the lock
  {
    std::lock_guard lock(guard_);
    if (recording_ == 0 && !kept_.empty()) settle(released);  // of a flush by another thread
    for (const Ref<Node>& operand : node->inputs)             // which may have failed
      ready = ready && (operand->value || operand->queue.load(std::memory_order_relaxed) == this);
    if (ready) {
      node->position = static_cast<std::uint32_t>(nodes_.size());
      node->queue.store(this, std::memory_order_release);
      nodes_.push_back(node.get());
    }
    if (nodes_.size() > max_pending_nodes) {
      close_ranks();
      full = nodes_.size() > max_pending_nodes / 2;
    }
  }
  if (!ready) admit_with_history(node);
  if (first_->eager_ || full) flush();
  first_->destroy_abandoned();
}

void Pending::record_again(const Ref<Node>& node) {
  const bool is_copy = [&] {
    std::lock_guard one(failed_guard);
    return !node->value && node->op.is_copy();
  }();
  if (is_copy) copy_now(node);
  else admit_with_history(node);
}

void Pending::destroy(std::unique_ptr<ReadListener> listener, const Thread& thread) {
  if (is_mine(thread)) return;
  std::lock_guard lock(thread.queue.guard_);
  if (!thread.queue.has_owner_ || thread.queue.life_ != thread.life) return;
  thread.queue.abandoned_.push_back(std::move(listener));
  thread.queue.has_abandoned_.store(true, std::memory_order_release);
}

void Pending::take_abandoned() {
  std::vector<std::unique_ptr<ReadListener>> abandoned;  // destroying them ends a recording, which takes the lock
  std::lock_guard lock(guard_);
  abandoned.swap(abandoned_);
  has_abandoned_.store(false, std::memory_order_relaxed);
}

/// Copies do not wait: their source is computed by another queue.
void Pending::copy_now(const Ref<Node>& node) {
  std::vector<Ref<Node>> released;  // after the lock
  const auto operand = [&] {
    std::lock_guard one(failed_guard);  // a copy that failed is made again by each thread that looks at it
    return node->value ? Ref<Node>() : node->inputs[0];
  }();
  if (!operand) return;
  const Tensor source(operand);
  Ref<Buffer> there(&source.observed());
  const Device from = source.device(), to = node->spec.device.physical();
  if (from != to) there = copy_between(there, from, to, source.spec());
  std::lock_guard one(failed_guard);
  std::lock_guard lock(guard_);
  if (node->value) return;
  node->value.set(std::move(there));
  if (keeps_history(*node)) {
    kept_.push_back(node);
    return;
  }
  end_history(*node, released);
}

void Pending::forget(Node& node) {
  std::lock_guard lock(guard_);
  if (node.queue.load(std::memory_order_relaxed) == this) nodes_[node.position] = nullptr;
}

void Pending::add_assignment(std::shared_ptr<VariableCell> cell) {
  std::lock_guard lock(guard_);
  assigned_.push_back(std::move(cell));
}

void Pending::start_recording() {
  std::lock_guard lock(guard_);
  ++recording_;
}

void Pending::stop_recording() {
  std::vector<Ref<Node>> released;  // outlives the lock: the death of a node takes it
  std::lock_guard lock(guard_);
  if (--recording_ == 0) settle(released);
  else if (recording_ == paused_) paused_since_ = new_sequence();
}

void Pending::pause_recording() {
  std::lock_guard lock(guard_);
  if (++paused_ == recording_) paused_since_ = new_sequence();
}

void Pending::resume_recording() {
  std::lock_guard lock(guard_);
  --paused_;
}

/// Its thread has ended, and the history of its recording is not needed.
void Pending::orphan() {
  std::vector<Ref<Node>> released;                       // destroyed after the lock is released
  std::vector<std::unique_ptr<ReadListener>> abandoned;  // destroyed after the lock is released
  std::lock_guard lock(guard_);
  has_owner_ = false;
  abandoned.swap(abandoned_);
  has_abandoned_.store(false, std::memory_order_relaxed);
  if (recording_ == 0) settle(released);
}

void Pending::adopt(Placement device, Pending* first) {
  std::lock_guard lock(guard_);
  has_owner_ = true;
  ++life_;
  device_ = device;
  first_ = first ? first : this;
  recording_ = first ? first->recording_ : 0;
  paused_ = first ? first->paused_ : 0;
  paused_since_ = first ? first->paused_since_ : 0;
}

/// Ends the history of nodes kept while a tape recorded.
void Pending::settle(std::vector<Ref<Node>>& released) {
  for (Ref<Node>& node : kept_) {
    if (node->value && node->refs.load(std::memory_order_relaxed) > 1) end_history(*node, released);
    released.push_back(std::move(node));
  }
  kept_.clear();
}

/// Values dropped unseen leave holes, which do not count as waiting.
void Pending::close_ranks() {
  std::erase_if(nodes_, [](const Node* node) { return !node; });
  for (std::size_t i = 0; i < nodes_.size(); ++i) nodes_[i]->position = static_cast<std::uint32_t>(i);
}

/// Decides which nodes are computed, which are yielded and which die, and spells the key.
void Pending::plan(Plan& p) {
  p.take(nodes_);
  p.key.push_back(p.live.size() | static_cast<std::uint64_t>(device_.device().kind) << 48);
  for (Node* node : p.live) {
    p.add_to_key(*node);
    if (!SequenceMask::is_used()) [[likely]]
      continue;
    if (Node* mask = SequenceMask::of(*node); mask && mask->queue.load(std::memory_order_acquire) == this)
      p.masked.emplace_back(node, mask);
  }
  std::unordered_map<const Node*, std::uint32_t> committed;  // how many cells return there after a failure
  for (const auto& cell : assigned_) {
    std::lock_guard lock(cell->guard);
    if (cell->committed.defined()) ++committed[cell->committed.node().get()];
  }
  const auto holders_of = [&](const Node* node, std::uint32_t uses) {
    const auto found = committed.find(node);
    return found == committed.end() ? uses : uses + found->second;
  };
  const auto is_kept = [&](const Node& node) { return !p.by_owner || keeps_history(node); };
  const bool keep_any = std::ranges::any_of(p.live, [&](const Node* node) { return is_kept(*node); });
  // A tensor without a holder needs no mask either.
  for (const auto& [node, mask] : p.masked)
    if (node->refs.load(std::memory_order_acquire) <= holders_of(node, p.uses[node->position]))
      ++p.uses[mask->position];
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < p.live.size(); ++i) {
    const Node* node = p.live[i];
    p.yields.push_back(is_kept(*node) || node->refs.load(std::memory_order_acquire) > holders_of(node, p.uses[i]));
    bits = bits << 1 | static_cast<std::uint64_t>(p.yields[i]);
    if (i % 64 == 63 || i + 1 == p.live.size()) p.key.push_back(std::exchange(bits, 0));
  }
  for (std::size_t i = 0; i < p.leaves.size(); ++i) {
    const Node* leaf = p.leaves[i];
    p.dying.push_back(!keep_any && leaf->refs.load(std::memory_order_acquire) == holders_of(leaf, p.leaf_uses[i]) &&
                      leaf->value.get()->refs.load(std::memory_order_acquire) == 1 && !is_borrowed(*leaf->value.get()));
    p.key.push_back(static_cast<std::uint64_t>(p.dying[i]));
    p.add_to_key(leaf->spec);
  }
}

void Pending::run(Plan& p) {
  const Device device = device_.device();
  const ProgramForSizes found = cached_program(device, p.key, [&] { return p.graph(); });
  const Executable* program = found.program.get();
  for (Node* leaf : p.leaves)
    p.inputs.push_back(device.kind == DeviceKind::cpu ? Ref<Buffer>(leaf->value.get())
                                                      : resident(Tensor(Ref<Node>(leaf))));
  p.outputs.resize(static_cast<std::size_t>(std::count(p.yields.begin(), p.yields.end(), char{1})));
  for (std::size_t k = 0; k < p.outputs.size(); ++k)
    if (const int input = program->may_overwrite()[k]; input >= 0)
      p.outputs[k] = p.inputs[static_cast<std::size_t>(input)];
  ++mine().dispatches_;
  program->run(p.inputs, p.outputs, {.symbols = found.symbols, .device = device});
  program->wait(p.outputs);
}

/// Values become visible; intermediate ones are released.
void Pending::commit(Plan& p) {
  std::size_t k = 0;
  for (std::size_t i = 0; i < p.live.size(); ++i) {
    Node* node = p.live[i];
    if (p.yields[i]) node->value.set(std::move(p.outputs[k++]));
    const bool keep = !p.by_owner || keeps_history(*node);
    if (Ref<Node> kept = keep ? Ref<Node>::of_living(node) : Ref<Node>()) {
      kept_.push_back(std::move(kept));
    } else {  // of those to keep, another thread waits in forget() to free it
      end_history(*node, p.released);
    }
    node->queue.store(nullptr, std::memory_order_release);  // at last: a thread that sees it may free the node
  }
  for (const auto& cell : assigned_) {
    std::lock_guard lock(cell->guard);
    if (cell->committed.defined()) p.released.push_back(cell->committed.node());
    cell->committed = {};
  }
  assigned_.clear();
}

/// After a failure: nothing waits any more, and no Variable has changed.
void Pending::abandon(Plan& p) {
  for (Node* node : p.live) node->queue.store(nullptr, std::memory_order_release);
  for (const auto& cell : assigned_) {
    std::lock_guard lock(cell->guard);
    if (!cell->committed.defined()) continue;
    p.released.push_back(cell->value.node());
    cell->value = std::exchange(cell->committed, {});
  }
  assigned_.clear();
}

void Pending::flush() {
  const LongWork work;
  const HostFloats floats;
  // A flush may set off another: freeing a node runs no code of users.
  auto& plans = OfThread<std::vector<std::unique_ptr<Plan>>>::get();
  std::unique_ptr<Plan> p = plans.empty() ? std::make_unique<Plan>() : std::move(plans.back());
  if (!plans.empty()) plans.pop_back();
  std::exception_ptr problem;
  const Pending& own = mine();  // before the lock: this may become the queue of this thread
  {
    guard_.lock_long();
    std::lock_guard lock(guard_, std::adopt_lock);
    p->reset(first_ == &own || !has_owner_);
    if (p->by_owner && recording_ == 0) settle(p->released);
    plan(*p);
    if (!p->live.empty()) {
      try {
        run(*p);
        commit(*p);
      } catch (...) {
        problem = std::current_exception();
        abandon(*p);
      }
    } else if (!assigned_.empty()) {
      commit(*p);  // values that were overtaken and are gone
    }
  }
  p->inputs.clear();
  p->outputs.clear();
  p->released.clear();
  plans.push_back(std::move(p));
  if (problem) std::rethrow_exception(problem);
}

struct Apart::Queues : OfThread<Lease>::Another {};
Apart::Apart() : queues_(std::make_unique<Queues>()) {}
Apart::~Apart() = default;

void synchronize() {
  Pending::flush_all();
  synchronize_devices();
}

void LazyEvaluation::observe(Node& node) {
  while (!node.value) {
    if (Pending* queue = node.queue.load(std::memory_order_acquire)) queue->flush();
    else Pending::mine(node.spec.device).record_again(Ref<Node>(&node));
  }
}

std::int64_t Pending::waiting_since(std::uint64_t sequence) {
  std::int64_t count = 0;
  for_each_own_queue([&](Pending& queue) {
    const std::lock_guard lock(queue.guard_);
    count += std::ranges::count_if(queue.nodes_, [&](const Node* node) { return node && node->sequence > sequence; });
  });
  return count;
}

void LazyEvaluation::recorded(const Ref<Node>& node) { Pending::mine(node->spec.device).record(node); }

void LazyEvaluation::forget(Node& node) {
  if (Pending* queue = node.queue.load(std::memory_order_acquire)) queue->forget(node);
}

void LazyEvaluation::start_recording() {
  for_each_own_queue([](Pending& queue) { queue.start_recording(); });
}
void LazyEvaluation::stop_recording() {
  for_each_own_queue([](Pending& queue) { queue.stop_recording(); });
}
void LazyEvaluation::pause_recording() {
  for_each_own_queue([](Pending& queue) { queue.pause_recording(); });
}
void LazyEvaluation::resume_recording() {
  for_each_own_queue([](Pending& queue) { queue.resume_recording(); });
}

}  // namespace gradus
