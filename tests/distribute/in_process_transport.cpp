#include "tests/distribute/in_process_transport.h"
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>
#include "gradus/base/error.h"

namespace gradus {

/// Messages for one rank, and their fate. Each generation has a box of its own.
struct InProcessBox {
  using Key = std::tuple<int, int, std::uint32_t, std::uint32_t>;  // sender, generation, step, slot
  std::map<Key, std::deque<std::vector<std::byte>>> letters = {};
  std::condition_variable changed = {};
  bool has_news = false;
  bool is_closed = false;
  std::string why_closed = {};
  std::string failure = {};  // why its group is broken
  std::string name = {};     // of its rank, for messages
};

class InProcessNetwork {
 public:
  std::mutex mutex;
  std::map<int, std::shared_ptr<InProcessBox>> boxes;
  int next = 1;

  std::shared_ptr<InProcessBox> at(const std::string& address) {
    for (const auto& [number, box] : boxes)
      if (std::to_string(number) == address) return box;
    throw InvalidArgument(text("no rank of this process has the address \"", address, "\""));
  }
  static void wake(InProcessBox& box) {
    box.has_news = true;
    box.changed.notify_all();
  }
};

namespace {

class InProcessTransport : public Transport {
 public:
  explicit InProcessTransport(std::shared_ptr<InProcessNetwork> network) : network_(std::move(network)) {}
  ~InProcessTransport() override { close(""); }

  std::string open() override {
    close("it forms a new group");
    const std::lock_guard lock(network_->mutex);
    number_ = network_->next++;
    box_ = network_->boxes[number_] = std::make_shared<InProcessBox>();
    group_ = {};
    return std::to_string(number_);
  }

  void join(Group group) override {
    check_group(group);
    internal_check(box_ != nullptr, "a transport joins a group before it is opened");
    const std::lock_guard lock(network_->mutex);
    peers_.clear();
    for (const Member& member : group.members) peers_.push_back(network_->at(member.address));
    require(peers_[static_cast<std::size_t>(group.rank)] == box_, "Group: rank ", group.rank,
            " has the address of another");
    group_ = std::move(group);
    box_->name = group_.members[static_cast<std::size_t>(group_.rank)].name;
  }

  const Group& group() const override { return group_; }

  TransferPointer send(int to, Tag tag, std::span<const std::byte> bytes) override {
    check_message(group_, to, tag);
    auto transfer = std::make_shared<Transfer>(Transfer{to, tag, bytes.size(), false, true});
    const std::lock_guard lock(network_->mutex);
    InProcessBox& box = *peers_[static_cast<std::size_t>(to)];
    if (box.is_closed) {
      note_gone(*transfer, box);
    } else {
      box.letters[{group_.rank, group_.generation, tag.step, tag.slot}].emplace_back(bytes.begin(), bytes.end());
      network_->wake(box);
    }
    return transfer;
  }

  TransferPointer receive(int from, Tag tag, std::span<std::byte> bytes) override {
    check_message(group_, from, tag);
    auto transfer = std::make_shared<Transfer>(Transfer{from, tag, bytes.size(), true});
    expected_.push_back({transfer, bytes});
    return transfer;
  }

  bool progress() override {
    const std::lock_guard lock(network_->mutex);
    check_whole();
    const auto before = expected_.size();
    std::erase_if(expected_, [&](Expected& each) { return take(each); });
    return expected_.size() != before;
  }

  void wait(Deadline deadline) override {
    std::unique_lock lock(network_->mutex);
    if (box_ == nullptr) return;
    box_->changed.wait_until(lock, deadline, [&] { return box_->has_news; });
    box_->has_news = false;
  }

  void fail(const std::string& why) override {
    const std::lock_guard lock(network_->mutex);
    if (box_ == nullptr) return;
    if (box_->failure.empty()) box_->failure = why;
    network_->wake(*box_);
  }

  void close(const std::string& why) noexcept override {
    const std::lock_guard lock(network_->mutex);
    if (box_ == nullptr || box_->is_closed) return;
    box_->is_closed = true;
    box_->why_closed = why;
    expected_.clear();
    for (const auto& peer : peers_) network_->wake(*peer);
    network_->boxes.erase(number_);
  }

 private:
  struct Expected {
    TransferPointer transfer;
    std::span<std::byte> bytes;
  };

  void check_whole() const {
    internal_check(box_ != nullptr && group_.ranks() > 0, "a transport is used before it has joined a group");
    require<Unavailable>(box_->failure.empty(), box_->failure);
    require<Unavailable>(!box_->is_closed, "this rank has left its group (", box_->why_closed,
                         "): the group has to form again");
  }

  static void note_gone(Transfer& transfer, const InProcessBox& box) {
    transfer.problem = text("has left the group", box.why_closed.empty() ? "" : ": ", box.why_closed);
    transfer.is_peer_gone = box.why_closed.empty();
  }

  /// True if it is done, well or not.
  bool take(Expected& each) {
    Transfer& transfer = *each.transfer;
    const auto found = box_->letters.find({transfer.peer, group_.generation, transfer.tag.step, transfer.tag.slot});
    if (found == box_->letters.end()) {
      const InProcessBox& sender = *peers_[static_cast<std::size_t>(transfer.peer)];
      if (sender.is_closed) note_gone(transfer, sender);
      return transfer.is_done = sender.is_closed;
    }
    const std::vector<std::byte>& letter = found->second.front();
    if (letter.size() != transfer.bytes)
      transfer.problem = text("sent ", letter.size(), " bytes where ", transfer.bytes, " were expected");
    else if (!letter.empty()) std::memcpy(each.bytes.data(), letter.data(), letter.size());
    found->second.pop_front();
    if (found->second.empty()) box_->letters.erase(found);
    return transfer.is_done = true;
  }

  std::shared_ptr<InProcessNetwork> network_;
  std::shared_ptr<InProcessBox> box_;
  std::vector<std::shared_ptr<InProcessBox>> peers_;
  std::vector<Expected> expected_;
  Group group_;
  int number_ = 0;
};

}  // namespace

std::shared_ptr<InProcessNetwork> in_process_network() { return std::make_shared<InProcessNetwork>(); }

std::unique_ptr<Transport> in_process_transport(std::shared_ptr<InProcessNetwork> network) {
  return std::make_unique<InProcessTransport>(std::move(network));
}

void kill_in_process(InProcessNetwork& network, const std::string& address) {
  const std::lock_guard lock(network.mutex);
  const auto killed = network.at(address);
  killed->is_closed = true;
  killed->why_closed = "it was killed";
  for (const auto& [number, box] : network.boxes) {
    if (box == killed) continue;
    if (box->failure.empty()) box->failure = text(killed->name, " was killed");
    network.wake(*box);
  }
}

}  // namespace gradus
