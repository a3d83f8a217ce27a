#include "gradus/base/notice.h"
#include <exception>
#include <iostream>
#include <memory>
#include <mutex>

namespace gradus {
namespace {

void write_to_stderr(std::string_view written) {
  std::cerr.write(written.data(), static_cast<std::streamsize>(written.size())).flush();
}

/// A sink that may be replaced while others write: they keep the one that they began with.
class Outlet {
 public:
  MessageSink exchange(MessageSink sink) {
    auto next = sink ? std::make_shared<const MessageSink>(std::move(sink)) : nullptr;
    std::lock_guard lock(mutex_);
    next.swap(sink_);
    return next ? *next : MessageSink();
  }
  std::shared_ptr<const MessageSink> now() {
    std::lock_guard lock(mutex_);
    return sink_;
  }
  void write(std::string_view written) {
    const auto sink = now();
    if (!sink) return write_to_stderr(written);
    try {
      (*sink)(written);
    } catch (const std::exception& error) {
      write_to_stderr(written);
      write_to_stderr("gradus: the sink of this message failed: ");
      write_to_stderr(error.what());
      write_to_stderr("\n");
    } catch (...) {
      write_to_stderr(written);
      write_to_stderr("gradus: the sink of this message failed\n");
    }
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<const MessageSink> sink_;
};

/// Never destroyed: notices come while the process ends, too.
Outlet& notices() {
  static Outlet& outlet = *new Outlet;
  return outlet;
}
Outlet& of_progress() {
  static Outlet& outlet = *new Outlet;
  return outlet;
}

}  // namespace

MessageSink set_notice_sink(MessageSink sink) { return notices().exchange(std::move(sink)); }
MessageSink set_progress_sink(MessageSink sink) { return of_progress().exchange(std::move(sink)); }
void detail::notice(std::string_view written) { notices().write(written); }
void detail::show_progress(std::string_view written) { of_progress().write(written); }
bool detail::shows_progress_on_stderr() { return of_progress().now() == nullptr; }

}  // namespace gradus
