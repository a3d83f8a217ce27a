/// libgradus_ucx.so: the one source that sees UCX's headers.
#include "gradus/distribute/messages/ucx_component.h"
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <ucp/api/ucp.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace gradus {
namespace {

using Clock = std::chrono::steady_clock;

class Worker;

/// A message under way.
struct Message {
  Worker* worker;
  void* transfer;  // null once its end was reported
  void* request = nullptr;
  std::size_t size;
  bool is_starting = true, has_ended = false;
  ucs_status_t status = UCS_OK;  // of one that ended while it was started
  std::size_t length = 0;
};

struct Peer {
  Worker* worker = nullptr;
  int rank = 0;
  ucp_ep_h endpoint = nullptr;
};

std::set<int> open_descriptors() {
  std::set<int> out;
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return out;
  while (const dirent* const entry = readdir(folder)) {
    int number = -1;
    std::from_chars(entry->d_name, entry->d_name + std::strlen(entry->d_name), number);
    if (number >= 0 && number != dirfd(folder)) out.insert(number);
  }
  closedir(folder);
  return out;
}

/// Sockets and descriptors that wait for them, not files of the program.
bool is_of_network(int descriptor) {
  struct stat status{};
  if (fstat(descriptor, &status) != 0) return false;
  return S_ISSOCK(status.st_mode) || (status.st_mode & S_IFMT) == 0;
}

class Worker {
 public:
  explicit Worker(const UcxSettings& settings) : settings_(settings), before_(open_descriptors()) {}

  /// Null if all is well, else the failed call.
  const char* open() {
    ucp_config_t* config = nullptr;
    if (const auto status = ucp_config_read(nullptr, nullptr, &config); status != UCS_OK)
      return ucs_status_string(status);
    const bool is_set = set(config, "TLS", settings_.transports) && set(config, "NET_DEVICES", settings_.devices) &&
                        (!settings_.notices_lost_peers ||
                         (set(config, "MM_ERROR_HANDLING", "y") && set(config, "KEEPALIVE_INTERVAL", "200ms")));
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
    const ucs_status_t status = is_set ? ucp_init(&params, config, &context_) : UCS_ERR_INVALID_PARAM;
    ucp_config_release(config);
    if (status != UCS_OK) return ucs_status_string(status);
    ucp_worker_params_t worker{};
    worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    if (const auto made = ucp_worker_create(context_, &worker, &worker_); made != UCS_OK)
      return ucs_status_string(made);
    if (const auto event = ucp_worker_get_efd(worker_, &events_); event != UCS_OK) return ucs_status_string(event);
    wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    seal();
    return wake_ < 0 ? std::strerror(errno) : nullptr;
  }

  ~Worker() {
    if (wake_ >= 0) ::close(wake_);
    if (is_stuck_) return;  // UCX may still hold bytes of messages: it is never driven again
    if (worker_ != nullptr) ucp_worker_destroy(worker_);
    if (context_ != nullptr) ucp_cleanup(context_);
  }

  std::size_t address(void* out, std::size_t size) {
    ucp_address_t* address = nullptr;
    std::size_t length = 0;
    if (ucp_worker_get_address(worker_, &address, &length) != UCS_OK) return 0;
    std::memcpy(out, address, std::min(size, length));
    ucp_worker_release_address(worker_, address);
    return length;
  }

  const char* connect(int rank, const void* address) {
    Peer& peer = peers_[rank];
    peer.worker = this;
    peer.rank = rank;
    ucp_ep_params_t params{};
    params.field_mask =
        UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = static_cast<const ucp_address_t*>(address);
    params.err_mode = settings_.notices_lost_peers ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
    params.err_handler.cb = [](void* peer, ucp_ep_h, ucs_status_t status) {
      const Peer& lost = *static_cast<Peer*>(peer);
      lost.worker->settings_.lost(lost.worker->settings_.owner, lost.rank, ucs_status_string(status));
    };
    params.err_handler.arg = &peer;
    const ucs_status_t status = ucp_ep_create(worker_, &params, &peer.endpoint);
    return status == UCS_OK ? nullptr : ucs_status_string(status);
  }

  void send(int rank, std::uint64_t tag, const void* bytes, std::size_t size, void* transfer) {
    Message* const message = begin(size, transfer);
    ucp_request_param_t params = params_of(message);
    params.cb.send = [](void*, ucs_status_t status, void* sent) {
      end(static_cast<Message*>(sent), status, static_cast<Message*>(sent)->size);
    };
    started(message, ucp_tag_send_nbx(peers_[rank].endpoint, bytes, size, tag, &params));
  }

  void receive(std::uint64_t tag, void* bytes, std::size_t size, void* transfer) {
    Message* const message = begin(size, transfer);
    ucp_request_param_t params = params_of(message);
    params.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;  // else nothing says how long it was
    params.cb.recv = [](void*, ucs_status_t status, const ucp_tag_recv_info_t* info, void* received) {
      end(static_cast<Message*>(received), status, info->length);
    };
    started(message, ucp_tag_recv_nbx(worker_, bytes, size, tag, ~std::uint64_t{0}, &params));
  }

  bool progress() { return ucp_worker_progress(worker_) != 0; }

  void sleep(int milliseconds) {
    if (ucp_worker_arm(worker_) != UCS_OK) return;  // something has come meanwhile
    pollfd wanted[] = {{events_, POLLIN, 0}, {wake_, POLLIN, 0}};
    poll(wanted, 2, milliseconds);
    std::uint64_t count = 0;
    if (wanted[1].revents != 0) (void)!read(wake_, &count, sizeof count);
  }

  void wake() const {
    const std::uint64_t one = 1;
    (void)!write(wake_, &one, sizeof one);
  }

  void seal() const {
    for (const int descriptor : open_descriptors()) {
      const int flags = fcntl(descriptor, F_GETFD);
      if (flags < 0 || (flags & FD_CLOEXEC) != 0 || before_.contains(descriptor) || !is_of_network(descriptor))
        continue;
      fcntl(descriptor, F_SETFD, flags | FD_CLOEXEC);
    }
  }

  void close(int milliseconds) {
    const auto deadline = Clock::now() + std::chrono::milliseconds(milliseconds);
    const bool was_whole = messages_.empty();
    for (Message* const message : std::set<Message*>(messages_)) {  // each may end, and be gone, within its cancelling
      tell_end(*message, "was given up");
      ucp_request_cancel(worker_, message->request);
    }
    const auto until = [&](const auto& done) {
      while (!done() && Clock::now() < deadline)
        if (!progress()) sleep(1);
      return done();
    };
    if (was_whole || settings_.notices_lost_peers) close_endpoints(!was_whole, until);
    if (!until([&] { return messages_.empty(); })) is_stuck_ = true;
    if (!was_whole && !settings_.notices_lost_peers) is_stuck_ = true;  // its endpoints cannot be closed
  }

 private:
  bool set(ucp_config_t* config, const char* name, const char* value) const {
    if (value == nullptr || std::getenv((std::string("UCX_") + name).c_str()) != nullptr) return true;  // the user's
    return ucp_config_modify(config, name, value) == UCS_OK;
  }

  Message* begin(std::size_t size, void* transfer) {
    Message* const message = new Message{this, transfer, nullptr, size};
    messages_.insert(message);
    return message;
  }
  static ucp_request_param_t params_of(Message* message) {
    ucp_request_param_t params{};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_DATATYPE;
    params.datatype = ucp_dt_make_contig(1);
    params.user_data = message;
    return params;
  }
  void started(Message* message, ucs_status_ptr_t request) {
    message->is_starting = false;
    if (UCS_PTR_IS_PTR(request)) message->request = request;
    if (request == nullptr) end(message, UCS_OK, message->size);
    else if (UCS_PTR_IS_ERR(request)) end(message, UCS_PTR_STATUS(request), 0);
    else if (message->has_ended) end(message, message->status, message->length);
  }
  static void end(Message* message, ucs_status_t status, std::size_t length) {
    if (message->is_starting) {  // before its request is known
      message->has_ended = true;
      message->status = status;
      message->length = length;
      return;
    }
    const std::unique_ptr<Message> ended(message);
    Worker& worker = *ended->worker;
    worker.messages_.erase(message);
    if (ended->request != nullptr) ucp_request_free(ended->request);
    if (ended->transfer != nullptr)
      worker.settings_.done(ended->transfer, status == UCS_OK ? nullptr : ucs_status_string(status), length);
  }
  void tell_end(Message& message, const char* problem) const {
    if (message.transfer != nullptr) settings_.done(message.transfer, problem, 0);
    message.transfer = nullptr;
  }

  /// Forced, nothing more is sent.
  void close_endpoints(bool forced, const auto& until) {
    std::set<void*> closing;
    for (auto& [rank, peer] : peers_) {
      if (peer.endpoint == nullptr) continue;
      ucp_request_param_t params{};
      if (forced) params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, params.flags = UCP_EP_CLOSE_FLAG_FORCE;
      void* const request = ucp_ep_close_nbx(peer.endpoint, &params);
      peer.endpoint = nullptr;
      if (request != nullptr && !UCS_PTR_IS_ERR(request)) closing.insert(request);
    }
    until([&] {
      std::erase_if(closing, [](void* request) {
        if (ucp_request_check_status(request) == UCS_INPROGRESS) return false;
        ucp_request_free(request);
        return true;
      });
      return closing.empty();
    });
    is_stuck_ = !closing.empty();
  }

  const UcxSettings settings_;
  const std::set<int> before_;  // descriptors that are none of this worker
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::map<int, Peer> peers_;
  std::set<Message*> messages_;
  int events_ = -1, wake_ = -1;
  bool is_stuck_ = false;
};

void say(const char* problem, char* why, std::size_t size) {
  if (size == 0) return;
  const std::size_t length = std::min(size - 1, std::strlen(problem));
  std::memcpy(why, problem, length);
  why[length] = 0;
}

Worker& of(void* worker) { return *static_cast<Worker*>(worker); }

constexpr UcxTable table = {
    .version = UcxTable::current,
    .open = [](const UcxSettings* settings, char* why, std::size_t size) -> void* {
      auto worker = std::make_unique<Worker>(*settings);
      const char* const problem = worker->open();
      if (problem == nullptr) return worker.release();
      say(problem, why, size);
      return nullptr;
    },
    .address = [](void* worker, void* out, std::size_t size) { return of(worker).address(out, size); },
    .connect =
        [](void* worker, int rank, const void* address, std::size_t, char* why, std::size_t size) {
          const char* const problem = of(worker).connect(rank, address);
          if (problem != nullptr) say(problem, why, size);
          return problem == nullptr ? 1 : 0;
        },
    .send = [](void* worker, int rank, std::uint64_t tag, const void* bytes, std::size_t size,
               void* transfer) { of(worker).send(rank, tag, bytes, size, transfer); },
    .receive = [](void* worker, std::uint64_t tag, void* bytes, std::size_t size,
                  void* transfer) { of(worker).receive(tag, bytes, size, transfer); },
    .progress = [](void* worker) { return of(worker).progress() ? 1 : 0; },
    .sleep = [](void* worker, int milliseconds) { of(worker).sleep(milliseconds); },
    .wake = [](void* worker) { of(worker).wake(); },
    .seal = [](void* worker) { of(worker).seal(); },
    .close =
        [](void* worker, int milliseconds) {
          of(worker).close(milliseconds);
          delete &of(worker);
        },
};

}  // namespace
}  // namespace gradus

extern "C" __attribute__((visibility("default"))) const gradus::UcxTable* gradus_ucx() { return &gradus::table; }
