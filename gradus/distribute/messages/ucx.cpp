#include "gradus/distribute/messages/ucx.h"
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>
#include "gradus/base/cpu_pause.h"
#include "gradus/base/error.h"
#include "gradus/base/hash.h"
#include "gradus/base/own_thread.h"
#include "gradus/base/spin.h"
#include "gradus/distribute/messages/component.h"
#include "gradus/distribute/messages/ucx_component.h"

namespace gradus {
namespace {

using namespace std::chrono_literals;

const UcxTable& ucx_functions() {
  static const UcxTable& table = table_of<UcxTable>(
      {"gradus_ucx", "gradus_ucx", "sending messages between processes by UCX", "libucx-dev", "libucx0"});
  return table;
}

/// For people: the folder of POSIX segments may have little room, as in containers. Empty if it has enough.
std::string lack_of_shared_memory() {
  constexpr std::uint64_t needed = 8 << 20;  // per rank, which takes 4.3 MB for receiving
  struct statvfs place{};
  if (statvfs("/dev/shm", &place) != 0) return {};
  const std::uint64_t left = std::uint64_t{place.f_bavail} * place.f_frsize;
  if (left >= needed) return {};
  return text(": /dev/shm has ", left >> 10, " KiB left, and each rank needs 5 MiB there (docker run --shm-size)");
}

/// An address as sent to peers: its length and checksum come first, since UCX reads an address without checking its
/// length.
std::string with_checksum(std::string_view address) {
  const std::array<std::uint64_t, 2> head{address.size(), hash_of(address)};
  return std::string(reinterpret_cast<const char*>(head.data()), sizeof head).append(address);
}

std::string_view checked_address(const Member& member) {
  std::array<std::uint64_t, 2> head{};
  const std::string_view all = member.address;
  if (all.size() >= sizeof head) std::memcpy(head.data(), all.data(), sizeof head);
  const std::string_view address = all.substr(std::min(all.size(), sizeof head));
  require<Unavailable>(
      !address.empty() && address.size() == head[0] && hash_of(address) == head[1], member.name, " gives ", all.size(),
      " bytes that are no address for messages, expected ", sizeof head,
      " with the length and checksum of those after them: another version of Gradus runs there, or the ",
      "bytes were changed on their way");
  return address;
}

class UcxTransport : public Transport {
 public:
  explicit UcxTransport(UcxChoice choice) : choice_(std::move(choice)), ucx_(ucx_functions()) {}
  ~UcxTransport() override { close(""); }

  std::string open() override {
    close("it forms a new group");
    const UcxSettings settings = {choice_.transports.empty() ? nullptr : choice_.transports.c_str(),
                                  choice_.devices.empty() ? nullptr : choice_.devices.c_str(),
                                  choice_.notices_lost_peers,
                                  this,
                                  &done,
                                  &lost};
    own_thread("messages by UCX", [] {}).join();  // UCX ends its process if it cannot start threads
    std::array<char, 256> why{};
    void* const opened = ucx_.open(&settings, why.data(), why.size());
    require<Unavailable>(opened != nullptr, "UCX does not start: ", why.data(),
                         choice_.transports.empty() ? "" : " (transports ", choice_.transports,
                         choice_.transports.empty() ? "" : ")", lack_of_shared_memory());
    {
      const std::lock_guard lock(mutex_);
      worker_ = opened;
      failure_.clear();
      has_failed_ = false;
    }
    group_ = {};
    is_any_gone_ = false;
    std::string address(64 << 10, '\0');
    address.resize(std::min(address.size(), ucx_.address(worker_, address.data(), address.size())));
    require<Unavailable>(!address.empty(), "UCX gives no address");
    return with_checksum(address);
  }

  void join(Group group) override {
    check_group(group);
    internal_check(worker_ != nullptr, "a transport joins a group before it is opened");
    group_ = std::move(group);
    peers_.assign(group_.members.size(), {});
    for (int rank = 0; rank < ranks(); ++rank) {
      if (rank == group_.rank) continue;
      const Member& member = group_.members[static_cast<std::size_t>(rank)];
      const std::string_view address = checked_address(member);
      std::array<char, 256> why{};
      require<Unavailable>(ucx_.connect(worker_, rank, address.data(), address.size(), why.data(), why.size()) != 0,
                           member.name, " cannot be reached by UCX: ", why.data());
    }
    greet();
    ucx_.seal(worker_);
    seals_until_ = in(10s);
  }

  const Group& group() const override { return group_; }

  TransferPointer send(int to, Tag tag, std::span<const std::byte> bytes) override {
    check_message(group_, to, tag);
    auto transfer = std::make_shared<Transfer>(Transfer{to, tag, bytes.size()});
    if (is_broken(*transfer)) return transfer;
    ucx_.send(worker_, to, word(group_.rank, tag), bytes.data(), bytes.size(), begun(transfer));
    return transfer;
  }

  TransferPointer receive(int from, Tag tag, std::span<std::byte> bytes) override {
    check_message(group_, from, tag);
    auto transfer = std::make_shared<Transfer>(Transfer{from, tag, bytes.size(), true});
    if (is_broken(*transfer)) return transfer;
    ucx_.receive(worker_, word(from, tag), bytes.data(), bytes.size(), begun(transfer));
    return transfer;
  }

  bool progress() override {
    check_whole();
    return ucx_.progress(worker_) != 0;
  }

  void wait(Deadline deadline) override {
    const auto until = std::chrono::steady_clock::now() + (crowded ? 0us : 20us);
    do {
      if (has_failed_ || worker_ == nullptr || ucx_.progress(worker_) != 0) return;
      cpu_pause();
    } while (std::chrono::steady_clock::now() < until);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left <= 0ms) return;
    if (until < seals_until_) ucx_.seal(worker_);  // UCX may take a second connection of a pair a little later
    ucx_.sleep(worker_, static_cast<int>(std::min<std::chrono::milliseconds>(left, 100ms).count()));
  }

  void fail(const std::string& why) override {
    const std::lock_guard lock(mutex_);
    if (has_failed_) return;
    failure_ = why;
    has_failed_ = true;
    if (worker_ != nullptr) ucx_.wake(worker_);
  }

  void close(const std::string& why) noexcept override {
    void* ended = nullptr;
    {
      const std::lock_guard lock(mutex_);
      ended = std::exchange(worker_, nullptr);
      if (!has_failed_) failure_ = "this rank has left its group (" + why + "): the group has to form again";
      has_failed_ = true;
    }
    if (ended != nullptr) ucx_.close(ended, 1000);
  }

 private:
  /// This rank's knowledge of another one.
  struct Peer {
    int under_way = 0;  // transfers from and to it
    std::string why_gone = {};
    Deadline gone_since = {};  // its last messages, and the news of it, come a little later
  };
  struct Begun {
    UcxTransport* self;
    TransferPointer transfer;
  };

  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }

  Begun* begun(const TransferPointer& transfer) {
    ++peer(transfer->peer).under_way;
    return new Begun{this, transfer};
  }
  static void done(void* transfer, const char* problem, std::size_t length) {
    const std::unique_ptr<Begun> given(static_cast<Begun*>(transfer));
    Transfer& ended = *given->transfer;
    --given->self->peer(ended.peer).under_way;
    ended.is_done = true;
    if (problem != nullptr)
      ended.problem = text(ended.is_receive ? "does not send: " : "does not take what is sent: ", problem);
    else if (length != ended.bytes)
      ended.problem = text("sent ", length, " bytes where ", ended.bytes, " were expected");
  }
  /// Called while UCX is driven, from within progress(). A rank may go as soon as it has finished the common work,
  /// while others still wait for each other: the group breaks only for ranks that still need it.
  static void lost(void* owner, int rank, const char* why) {
    auto& self = *static_cast<UcxTransport*>(owner);
    Peer& gone = self.peer(rank);
    if (!gone.why_gone.empty()) return;
    gone.why_gone = why;
    gone.gone_since = std::chrono::steady_clock::now();
    self.is_any_gone_ = true;
  }
  void miss() {
    const auto now = std::chrono::steady_clock::now();
    for (int rank = 0; rank < ranks(); ++rank) {
      const Peer& other = peer(rank);
      if (other.under_way == 0 || other.why_gone.empty()) continue;
      const auto did = has_left(rank);
      const std::chrono::milliseconds patience = hears_of_peers() && !did ? 1000ms : 100ms;
      if (now >= other.gone_since + patience)
        fail(group_.members[static_cast<std::size_t>(rank)].name +
             (did ? has_left_in_order(*did) : " is gone: " + other.why_gone));
    }
  }

  /// generation: 6 bits, sender: 14, step: 24, slot: 20.
  std::uint64_t word(int from, Tag tag) const {
    return static_cast<std::uint64_t>(group_.generation % 64) << 58 | static_cast<std::uint64_t>(from) << 44 |
           static_cast<std::uint64_t>(tag.step) << 20 | tag.slot;
  }

  bool is_broken(Transfer& transfer) {
    if (!has_failed_ && worker_ != nullptr) {
      if (!is_any_gone_ || peer(transfer.peer).why_gone.empty()) return false;
      transfer.is_done = transfer.is_peer_gone = true;
      transfer.problem = "is gone: " + peer(transfer.peer).why_gone;
      return true;
    }
    transfer.is_done = true;
    const std::lock_guard lock(mutex_);
    transfer.problem = "cannot be reached any more: " + (failure_.empty() ? "the group is broken" : failure_);
    return true;
  }

  void check_whole() {
    if (is_any_gone_) miss();
    if (!has_failed_) return;
    const std::lock_guard lock(mutex_);
    throw Unavailable(failure_);
  }

  /// Every rank hears every other: connections are made, and so known, before anything is asked of them.
  void greet() {
    Exchange exchange(*this, text("joining generation ", group_.generation));
    const Tag tag = {Tag::steps - 1, Tag::slots - 1};
    std::vector<std::byte> heard(static_cast<std::size_t>(ranks()));
    const std::byte word{1};
    for (int step = 1; step < ranks(); ++step) {
      const int to = (rank() + step) % ranks(), from = (rank() + ranks() - step) % ranks();
      exchange.receive(from, tag, {&heard[static_cast<std::size_t>(from)], 1});
      exchange.send(to, tag, {&word, 1});
    }
    exchange.finish(choice_.timeout);
  }

  const UcxChoice choice_;
  const UcxTable& ucx_;
  void* worker_ = nullptr;
  Group group_;
  std::vector<Peer> peers_;
  bool is_any_gone_ = false;
  Deadline seals_until_{};
  std::mutex mutex_;  // guards members that other threads than the driving one touch
  std::string failure_;
  std::atomic<bool> has_failed_ = false;
};

}  // namespace

std::string shared_memory_transports() {
  static const bool has_cma = [] {  // containers may forbid it
    std::uint64_t from = 1, to = 0;
    const iovec there{&from, sizeof from}, here{&to, sizeof to};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(sizeof to);
  }();
  return has_cma ? "posix,cma,self" : "posix,self";
}

std::unique_ptr<Transport> ucx_transport(UcxChoice choice) { return std::make_unique<UcxTransport>(std::move(choice)); }

}  // namespace gradus
