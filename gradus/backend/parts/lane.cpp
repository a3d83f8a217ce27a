/// The threads of devices.
#include "gradus/backend/parts/lane.h"
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>
#include "gradus/base/activity_log.h"
#include "gradus/base/error.h"
#include "gradus/base/thread_pool.h"
#include "gradus/base/threads.h"
#include "gradus/graph/call_context.h"

namespace gradus {
namespace {

class Lane {
 public:
  static Lane& of(const Device& device) {
    static auto* lanes = new std::map<int, std::unique_ptr<Lane>>;
    static std::mutex guard;
    const std::lock_guard lock(guard);
    auto& lane = (*lanes)[Placement(device).code()];
    if (!lane) lane.reset(new Lane);
    return *lane;
  }
  std::future<void> give(std::packaged_task<void()> task) {
    std::future<void> done = task.get_future();
    {
      const std::lock_guard lock(guard_);
      waiting_.push_back(std::move(task));
    }
    wake_.notify_one();
    return done;
  }

 private:
  Lane() {
    std::thread([this] { work(); }).detach();  // never destroyed, as the workers of the pool
  }
  [[noreturn]] void work() {
    for (;;) {
      std::unique_lock lock(guard_);
      wake_.wait(lock, [&] { return !waiting_.empty(); });
      std::packaged_task<void()> task = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      task();
    }
  }
  std::mutex guard_;
  std::condition_variable wake_;
  std::deque<std::packaged_task<void()>> waiting_;
};

}  // namespace

void run_side_by_side(std::span<const LaneWork> all) {
  const int share = std::max(1, num_threads() / static_cast<int>(std::max<std::size_t>(1, all.size())));
  const auto run = [&](const LaneWork& one) {
    const bool is_logical = one.device.kind == DeviceKind::cpu && all.size() > 1;
    const ThreadPool::OnDevice team(is_logical ? one.device.index : 0, share);
    one.work();
  };
  ActivityLog* const own = CallContext::here().log;
  std::vector<std::future<void>> others;
  for (std::size_t i = 1; i < all.size(); ++i) {
    ActivityLog* const log = own ? &own->profile().log_of_device(text(all[i].device)) : nullptr;
    others.push_back(Lane::of(all[i].device).give(std::packaged_task<void()>([&run, &one = all[i], log] {
      const FieldScope<&CallContext::log> logs(log);
      run(one);
    })));
  }
  if (own) own->begin(Activity::compute);  // to wait for the others, too
  std::exception_ptr problem;
  const auto note = [&](const auto& work) {
    try {
      work();
    } catch (...) {
      if (!problem) problem = std::current_exception();
    }
  };
  if (!all.empty()) note([&] { run(all[0]); });
  for (std::future<void>& other : others) note([&] { other.get(); });  // all, since they use locals of this call
  if (own) own->end_unkept();
  if (problem) std::rethrow_exception(problem);
}

}  // namespace gradus
