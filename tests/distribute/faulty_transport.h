/// FaultyTransport: fault injection, for tests. It lets messages come late, never, twice or damaged, and ranks die or
/// stop, each at a chosen message.
#pragma once
#include <deque>
#include "gradus/distribute/messages/transport.h"

namespace gradus {

struct Fault {
  enum class Kind { delay, drop, duplicate, corrupt, strike };
  Kind kind = Kind::delay;
  int message = 0;          // its number among the messages that this rank sends, from 0 on
  bool is_lasting = false;  // that one and all after it
  std::chrono::milliseconds delay{2};
  std::function<void()> strike = {};  // called first, of any kind: it may raise a signal, or throw
};

class FaultyTransport : public Transport {
 public:
  FaultyTransport(std::unique_ptr<Transport> inner, std::vector<Fault> faults)
      : inner_(std::move(inner)), faults_(std::move(faults)) {}
  ~FaultyTransport() override { close(""); }

  std::string open() override;
  void join(Group group) override { inner_->join(std::move(group)); }
  const Group& group() const override { return inner_->group(); }
  TransferPointer send(int to, Tag tag, std::span<const std::byte> bytes) override;
  TransferPointer receive(int from, Tag tag, std::span<std::byte> bytes) override {
    return inner_->receive(from, tag, bytes);
  }
  bool progress() override;
  void wait(Deadline deadline) override;
  void fail(const std::string& why) override { inner_->fail(why); }
  void close(const std::string& why) noexcept override;

  void set(Fault fault) { faults_ = {std::move(fault)}; }
  /// How many messages were to be sent so far.
  int sent() const { return sent_; }
  /// Waits for delayed messages, and sends them: a rank that is done drives its transport no more.
  void send_late();
  /// From now on nothing moves, as in a process that is stopped.
  void stop() { is_stopped_ = true; }

 private:
  struct Late {
    Deadline due;
    int to;
    Tag tag;
    std::vector<std::byte> bytes;
  };
  /// The fault of the next message, if there is one.
  const Fault* next_fault();
  void send_copy(int to, Tag tag, std::vector<std::byte> bytes);

  std::unique_ptr<Transport> inner_;
  std::vector<Fault> faults_;
  std::deque<Late> late_;
  /// Copies stay until they are sent.
  std::deque<std::pair<TransferPointer, std::vector<std::byte>>> copies_;
  int sent_ = 0;
  bool is_stopped_ = false;
};

}  // namespace gradus
