/// Transport: messages between ranks, one small interface over threads of one process, shared memory or a network. A
/// message has a tag and a length that both sides know; a mismatch is an Error. Nothing waits without a deadline. A
/// transport belongs to one thread at a time, which also drives it; `fail` alone may come from others.
///
/// This is the first header of messages/. In flow bytes for a rank or a server; out flow the same bytes on the other
/// side, or an Error that names the peer. Tensors go by a Transport, questions and their answers by rpc.h.
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradus {

using Deadline = std::chrono::steady_clock::time_point;
inline Deadline in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

/// Identifies a message among those of one sender. The transport adds the generation of the group.
struct Tag {
  std::uint32_t step = 0;  // of the training, modulo `steps`
  std::uint32_t slot = 0;  // which exchange of the step
  static constexpr std::uint32_t steps = 1u << 24, slots = 1u << 19;
  bool operator==(const Tag&) const = default;
};

struct Member {
  std::string name;     // for messages: "rank 1 (node3, process 4711)"
  std::string address;  // the result of its transport's open()
};

/// The ranks that exchange messages. A group never changes: a new one has a greater generation.
struct Group {
  int rank = 0;
  int generation = 1;
  std::vector<Member> members = {};
  int ranks() const { return static_cast<int>(members.size()); }
};

/// A message under way. Its bytes belong to the transport until it is done.
struct Transfer {
  int peer = 0;
  Tag tag = {};
  std::size_t bytes = 0;
  bool is_receive = false;
  bool is_done = false;
  std::string problem = {};   // of one that is done and went wrong
  bool is_peer_gone = false;  // since the peer has gone, without a reason
};
using TransferPointer = std::shared_ptr<Transfer>;

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  /// Leaves the group, if any, and begins again. The address is for the other members of the next group.
  virtual std::string open() = 0;
  /// Joins the group of which this is a member. InvalidArgument if it is none.
  virtual void join(Group group) = 0;
  virtual const Group& group() const = 0;

  /// Starts a message; `bytes` stay as they are until it is done.
  virtual TransferPointer send(int to, Tag tag, std::span<const std::byte> bytes) = 0;
  /// Starts to receive; `bytes` are filled as a whole, or the transfer has a problem.
  virtual TransferPointer receive(int from, Tag tag, std::span<std::byte> bytes) = 0;
  /// Moves all that can be moved without waiting; true if anything moved. Unavailable if the group is broken.
  virtual bool progress() = 0;
  /// Until something may have happened, at most until `deadline`: looks for a short while, then sleeps.
  virtual void wait(Deadline deadline) = 0;

  /// Breaks the group: from now on progress() throws `why`. From any thread; the first one counts.
  virtual void fail(const std::string& why) = 0;
  /// Leaves the group without waiting for any rank. Bytes of transfers are not touched any more. Peers that still wait
  /// for this rank receive `why` if the transport can send it.
  virtual void close(const std::string& why) noexcept = 0;

  /// Notes that a peer has done all its work and left: only messages under way still arrive from it. `did`: its last
  /// work, as it said, or empty. From any thread.
  void note_left(int rank, std::string did);
  /// The last work of a peer that has left.
  std::optional<std::string> has_left(int rank) const;
  bool has_any_left() const { return has_any_left_; }
  /// From now on another source, as a meeting, also reports why peers go, by note_left() and fail(). A peer that the
  /// network alone reports as gone gets a second for that.
  void hear_of_peers() { hears_of_peers_ = true; }
  bool hears_of_peers() const { return hears_of_peers_; }
  /// True once the work of the group has failed here because a peer is gone, silent or failed. From any thread.
  bool is_failed_by_peers() const { return is_failed_by_peers_; }
  void note_failed_by_peers() { is_failed_by_peers_ = true; }

  int rank() const { return group().rank; }
  int ranks() const { return group().ranks(); }

 private:
  std::atomic<bool> is_failed_by_peers_ = false, has_any_left_ = false, hears_of_peers_ = false;
  mutable std::mutex mutex_of_left_;
  std::map<int, std::string> left_;
};

/// Drives `transport` until `done`. After the deadline it throws an Unavailable with the text of `late`. An error
/// closes the transport, as the reason for the peers.
void await(Transport& transport, Deadline deadline, const std::function<bool()>& done,
           const std::function<std::string()>& late);

/// Messages that belong together. One that is left before its end closes the transport: a rank that leaves a step in
/// its midst cannot go on in this generation, and freed bytes must not be written.
class Exchange {
 public:
  /// `doing`: for messages, as "all_reduce 3 of step 12".
  Exchange(Transport& transport, std::string doing) : transport_(&transport), doing_(std::move(doing)) {}
  Exchange(Exchange&&) = default;
  ~Exchange();

  void send(int to, Tag tag, std::span<const std::byte> bytes);
  void receive(int from, Tag tag, std::span<std::byte> bytes);
  /// True if all are done. Unavailable if one has a problem; it names the peer.
  bool is_done();
  /// Drives the transport until all are done.
  void finish(std::chrono::milliseconds timeout);
  /// The ranks whose messages this one still waits for.
  std::string late(std::chrono::milliseconds timeout) const;
  const std::string& doing() const { return doing_; }

 private:
  void check_left();
  bool has_waited_for_news();

  Transport* transport_;
  std::string doing_;
  std::vector<TransferPointer> under_way_;
  // Since a peer is known to have gone: by then its messages, and the reason, have arrived; and checks so far.
  std::optional<Deadline> news_end_ = {};
  int looks_ = 0;
};

/// The text after the name of a rank for which others wait in vain; `did`: its last work, or empty.
std::string has_left_in_order(std::string_view did);

/// "a, b and 3 more": eight at most.
std::string listed(std::span<const std::string> names);

/// InvalidArgument unless `group` is one with this rank in it, as every join() asks.
void check_group(const Group& group);
/// InternalError unless a message may go to or from `peer` with `tag`.
void check_message(const Group& group, int peer, Tag tag);

}  // namespace gradus
