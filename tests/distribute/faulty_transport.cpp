#include "tests/distribute/faulty_transport.h"
#include <algorithm>
#include <thread>

namespace gradus {

std::string FaultyTransport::open() {
  late_.clear();
  std::string address = inner_->open();
  copies_.clear();
  return address;
}

const Fault* FaultyTransport::next_fault() {
  const int message = sent_++;
  for (const Fault& fault : faults_)
    if (fault.message == message || (fault.is_lasting && fault.message < message)) return &fault;
  return nullptr;
}

void FaultyTransport::send_copy(int to, Tag tag, std::vector<std::byte> bytes) {
  copies_.emplace_back(nullptr, std::move(bytes));
  copies_.back().first = inner_->send(to, tag, copies_.back().second);
}

TransferPointer FaultyTransport::send(int to, Tag tag, std::span<const std::byte> bytes) {
  const Fault* const fault = next_fault();
  if (fault == nullptr) return inner_->send(to, tag, bytes);
  std::vector<std::byte> copy(bytes.begin(), bytes.end());
  const auto sent = std::make_shared<Transfer>(Transfer{to, tag, bytes.size(), false, true});
  if (fault->strike) fault->strike();
  switch (fault->kind) {
    case Fault::Kind::strike:
      return is_stopped_ ? std::make_shared<Transfer>(Transfer{to, tag, bytes.size()}) : inner_->send(to, tag, bytes);
    case Fault::Kind::drop: return sent;
    case Fault::Kind::delay: late_.push_back({in(fault->delay), to, tag, std::move(copy)}); return sent;
    case Fault::Kind::duplicate: {  // the receiver may have left after the first one
      TransferPointer first = inner_->send(to, tag, bytes);
      send_copy(to, tag, std::move(copy));
      return first;
    }
    case Fault::Kind::corrupt:
      if (!copy.empty()) copy[copy.size() / 2] ^= std::byte{0x10};
      send_copy(to, tag, std::move(copy));
      return sent;
  }
  return sent;
}

bool FaultyTransport::progress() {
  if (is_stopped_) return false;
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(late_, [&](Late& each) {
    if (each.due > now) return false;
    send_copy(each.to, each.tag, std::move(each.bytes));
    return true;
  });
  const bool moved = inner_->progress();
  std::erase_if(copies_, [](const auto& each) { return each.first->is_done; });
  return moved;
}

void FaultyTransport::wait(Deadline deadline) {
  if (is_stopped_) return std::this_thread::sleep_until(deadline);
  for (const Late& each : late_) deadline = std::min(deadline, each.due);
  inner_->wait(deadline);
}

void FaultyTransport::send_late() {
  while (!late_.empty() || !copies_.empty())
    if (!progress()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void FaultyTransport::close(const std::string& why) noexcept {
  late_.clear();
  inner_->close(why);
}

}  // namespace gradus
