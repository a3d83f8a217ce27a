#include "tests/distribute/checked_transport.h"
#include "gradus/base/hash.h"
#include "gradus/base/rooms.h"

namespace gradus {

CheckedTransport::Receipt CheckedTransport::receipt_of(Tag tag, std::span<const std::byte> bytes) {
  return {bytes.size(), hash_of_bytes(bytes), std::uint64_t{tag.step} << 32 | tag.slot};
}

std::string CheckedTransport::open() {
  std::string address = inner_->open();
  pairs_.clear();
  return address;
}

TransferPointer CheckedTransport::send(int to, Tag tag, std::span<const std::byte> bytes) {
  Pair pair{std::make_shared<Transfer>(Transfer{to, tag, bytes.size()})};
  pair.written = std::make_unique<Receipt>(receipt_of(tag, bytes));
  pair.message = inner_->send(to, tag, bytes);
  pair.receipt = inner_->send(to, {tag.step, tag.slot + Tag::slots}, std::as_bytes(std::span(*pair.written)));
  pairs_.push_back(std::move(pair));
  return pairs_.back().shown;
}

TransferPointer CheckedTransport::receive(int from, Tag tag, std::span<std::byte> bytes) {
  Pair pair{std::make_shared<Transfer>(Transfer{from, tag, bytes.size(), true})};
  pair.written = std::make_unique<Receipt>();
  pair.bytes = bytes;
  pair.message = inner_->receive(from, tag, bytes);
  pair.receipt =
      inner_->receive(from, {tag.step, tag.slot + Tag::slots}, std::as_writable_bytes(std::span(*pair.written)));
  pairs_.push_back(std::move(pair));
  return pairs_.back().shown;
}

bool CheckedTransport::settle(Pair& pair) {
  if (!pair.message->is_done || !pair.receipt->is_done) return false;
  Transfer& shown = *pair.shown;
  shown.problem = pair.message->problem.empty() ? pair.receipt->problem : pair.message->problem;
  shown.is_peer_gone = pair.message->is_peer_gone || pair.receipt->is_peer_gone;
  if (shown.is_receive && shown.problem.empty() && *pair.written != receipt_of(shown.tag, pair.bytes))
    shown.problem = "sent bytes that were damaged on their way: their checksum is another";
  return shown.is_done = true;
}

bool CheckedTransport::progress() {
  const bool moved = inner_->progress();
  return std::erase_if(pairs_, settle) > 0 || moved;
}

void CheckedTransport::close(const std::string& why) noexcept {
  inner_->close(why);
  pairs_.clear();
}

}  // namespace gradus
