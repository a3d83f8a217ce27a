#include "tests/fake_device.h"
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include "gradus/backend/backend.h"
#include "gradus/base/error.h"

namespace gradus::testing_device {
namespace {

std::atomic<std::int64_t> runs{0}, done{0}, to_device{0}, to_host{0};

/// Set once, when what it stands for has happened.
class Event {
 public:
  void set(std::exception_ptr problem = {}) {
    {
      const std::lock_guard lock(guard_);
      is_set_ = true;
      problem_ = std::move(problem);
    }
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(guard_);
    changed_.wait(lock, [&] { return is_set_; });
    if (problem_) std::rethrow_exception(problem_);
  }

 private:
  std::mutex guard_;
  std::condition_variable changed_;
  bool is_set_ = false;
  std::exception_ptr problem_;
};

class Queue {
 public:
  static Queue& of(const Device& device) {
    static auto* queues = new std::array<Queue, 2>;
    return (*queues)[static_cast<std::size_t>(device.index)];
  }
  Queue() {
    std::thread([this] { work(); }).detach();
  }
  void give(std::function<void()> task) {
    {
      const std::lock_guard lock(guard_);
      tasks_.push_back(std::move(task));
    }
    wake_.notify_one();
  }

 private:
  [[noreturn]] void work() {
    for (std::uint32_t count = 1;; ++count) {
      std::unique_lock lock(guard_);
      wake_.wait(lock, [&] { return !tasks_.empty(); });
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      if (count % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));  // a device is late at times
      task();
    }
  }
  std::mutex guard_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
};

constexpr int poison = 0xb6;

class FakeMemory final : public DeviceMemory {
 public:
  explicit FakeMemory(std::int64_t bytes) : bytes_(bytes) {
    if (bytes > 0) std::memset(storage_->data(), poison, static_cast<std::size_t>(bytes));
  }
  void wait() const override { event()->wait(); }
  const void* host() override {
    wait();
    const std::lock_guard lock(guard_);
    if (!mirror_) {
      ++to_host;
      mirror_ = Buffer::allocate(bytes_);
      if (bytes_ > 0) std::memcpy(mirror_->data(), storage_->data(), static_cast<std::size_t>(bytes_));
    }
    return mirror_->data();
  }

  Ref<Buffer> storage() const { return storage_; }
  void set_storage(Ref<Buffer> storage) { storage_ = std::move(storage); }
  std::shared_ptr<Event> event() const {
    const std::lock_guard lock(guard_);
    return event_;
  }
  /// What it holds is no longer what it will hold.
  void begin(std::shared_ptr<Event> event, Ref<Buffer> mirror = {}) {
    const std::lock_guard lock(guard_);
    event_ = std::move(event);
    mirror_ = std::move(mirror);
  }

 private:
  const std::int64_t bytes_;
  Ref<Buffer> storage_ = Buffer::allocate(bytes_);
  mutable std::mutex guard_;
  std::shared_ptr<Event> event_;
  Ref<Buffer> mirror_;
};

FakeMemory& memory_of(const Ref<Buffer>& buffer) {
  auto* memory = dynamic_cast<FakeMemory*>(buffer->device_memory());
  internal_check(memory != nullptr, "a buffer of the host was handed to a device");
  return *memory;
}

bool may_fail(const Graph& graph) {
  return std::ranges::any_of(graph.values, [](const Value& v) { return v.op.may_fail(); });
}

class FakeExecutable final : public ForwardingExecutable {
 public:
  explicit FakeExecutable(std::shared_ptr<const Executable> inner)
      : ForwardingExecutable(std::move(inner)), may_fail_(may_fail(inner_->graph())) {}

  void run(std::span<const Ref<Buffer>> inputs, std::span<Ref<Buffer>> outputs,
           const RunContext& context) const override {
    const std::span<const std::int64_t> symbols = context.symbols;
    const Device& device = context.device;
    internal_check(device.kind == DeviceKind::plugin, "a program of a fake device is run on ", device);
    ++runs;
    const auto event = std::make_shared<Event>();
    const std::vector<Ref<Buffer>> in(inputs.begin(), inputs.end());
    std::vector<Ref<Buffer>> out;
    std::vector<bool> given;
    for (const Ref<Buffer>& buffer : in) memory_of(buffer);
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const Value& v = graph()[graph().outputs[k]];
      given.push_back(static_cast<bool>(outputs[k]));
      if (!outputs[k]) {
        const std::int64_t bytes = bytes_of({v.spec.dtype, v.spec.shape.evaluated(symbols)});
        outputs[k] = Buffer::of_device(std::make_shared<FakeMemory>(bytes), bytes);
      }
      out.push_back(outputs[k]);
    }
    std::vector<std::shared_ptr<Event>> before;  // of what it reads, which may come from another queue
    for (const Ref<Buffer>& buffer : in) before.push_back(memory_of(buffer).event());
    std::vector<std::shared_ptr<Event>> overwritten;
    for (std::size_t k = 0; k < out.size(); ++k) overwritten.push_back(given[k] ? memory_of(out[k]).event() : nullptr);
    for (const Ref<Buffer>& buffer : out) memory_of(buffer).begin(event);
    Queue::of(device).give([kept = inner_, in, out, given, event, before, overwritten,
                            symbols = std::vector<std::int64_t>(symbols.begin(), symbols.end())] {
      try {
        for (const auto& earlier : before) earlier->wait();
        std::vector<Ref<Buffer>> from, to(out.size());
        for (const Ref<Buffer>& buffer : in) from.push_back(memory_of(buffer).storage());
        for (std::size_t k = 0; k < out.size(); ++k)
          if (given[k]) to[k] = memory_of(out[k]).storage();
        kept->run(from, to, {.symbols = symbols});
        for (std::size_t k = 0; k < out.size(); ++k) store(out[k], to[k]);
        ++done;
        event->set();
      } catch (...) {
        for (std::size_t k = 0; k < out.size(); ++k)  // nothing was written
          if (overwritten[k]) memory_of(out[k]).begin(overwritten[k]);
        event->set(std::current_exception());
      }
    });
    {
      const std::lock_guard lock(guard_);
      last_runs_[std::this_thread::get_id()] = event;
    }
    if (outputs.empty()) event->wait();
  }
  void wait(std::span<const Ref<Buffer>> outputs) const override {
    // Of the run itself: what it was to overwrite is what it was, if it has failed.
    if (!may_fail_ || outputs.empty()) return;
    std::unique_lock lock(guard_);
    const std::shared_ptr<Event> last = last_runs_.at(std::this_thread::get_id());
    lock.unlock();
    last->wait();
  }

 private:
  /// An output may be an input as it is, which another program may overwrite: it gets a copy.
  static void store(const Ref<Buffer>& out, const Ref<Buffer>& made) {
    FakeMemory& memory = memory_of(out);
    if (memory.storage().get() == made.get()) return;
    if (made->bytes() > 0) std::memcpy(memory.storage()->data(), made->data(), static_cast<std::size_t>(made->bytes()));
  }
  bool may_fail_;
  mutable std::mutex guard_;
  mutable std::map<std::thread::id, std::shared_ptr<Event>> last_runs_;
};

class FakeBackend final : public Backend {
 public:
  std::shared_ptr<const Executable> compile(Graph graph, const CompileOptions& options) override {
    return std::make_shared<FakeExecutable>(processor().compile(std::move(graph), options));
  }
  std::int64_t planned_bytes(Graph graph, std::span<const std::int64_t> symbols) override {
    return processor().planned_bytes(std::move(graph), symbols);
  }
  Ref<Buffer> from_host(const Device& device, const Ref<Buffer>& host, const Spec&) override {
    ++to_device;
    auto memory = std::make_shared<FakeMemory>(host->bytes());
    const auto event = std::make_shared<Event>();
    memory->begin(event, host);
    Queue::of(device).give([memory, event, host] {
      if (host->bytes() > 0)
        std::memcpy(memory->storage()->data(), host->data(), static_cast<std::size_t>(host->bytes()));
      event->set();
    });
    return Buffer::of_device(std::move(memory), host->bytes());
  }

 private:
  static Backend& processor() { return backend_of(DeviceKind::cpu); }
};

/// The whole test runs there if the environment asks for it.
const bool is_default = [] {
  const char* asked = std::getenv("GRADUS_TEST_DEVICE");
  if (!asked || std::string_view(asked) != "fake") return false;
  add_fake_devices();
  set_default_device({DeviceKind::plugin, 0});
  return true;
}();

}  // namespace

void add_fake_devices() {
  static FakeBackend backend;
  register_backend(DeviceKind::plugin, backend, 2);
}

Counts counts() { return {runs, done, to_device, to_host}; }

struct Held::Gate {
  std::mutex guard;
  std::condition_variable changed;
  bool is_open = false;
};

Held::Held(int device) : gate_(std::make_shared<Gate>()) {
  Queue::of({DeviceKind::plugin, device}).give([gate = gate_] {
    std::unique_lock lock(gate->guard);
    gate->changed.wait_for(lock, std::chrono::minutes(1), [&] { return gate->is_open; });
  });
}

Held::~Held() {
  {
    const std::lock_guard lock(gate_->guard);
    gate_->is_open = true;
  }
  gate_->changed.notify_all();
}

}  // namespace gradus::testing_device
