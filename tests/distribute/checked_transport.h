/// CheckedTransport: checksums that notice bytes damaged on their way. Each message is followed by a receipt with its
/// length and checksum. Networks check their packets, so this is for untrusted ones and for tests.
#pragma once
#include <array>
#include "gradus/distribute/messages/transport.h"

namespace gradus {

class CheckedTransport : public Transport {
 public:
  explicit CheckedTransport(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}
  ~CheckedTransport() override { close(""); }

  std::string open() override;
  void join(Group group) override { inner_->join(std::move(group)); }
  const Group& group() const override { return inner_->group(); }
  TransferPointer send(int to, Tag tag, std::span<const std::byte> bytes) override;
  TransferPointer receive(int from, Tag tag, std::span<std::byte> bytes) override;
  bool progress() override;
  void wait(Deadline deadline) override { inner_->wait(deadline); }
  void fail(const std::string& why) override { inner_->fail(why); }
  void close(const std::string& why) noexcept override;

 private:
  using Receipt = std::array<std::uint64_t, 3>;  // length, checksum, tag
  struct Pair {
    TransferPointer shown, message, receipt;
    std::span<const std::byte> bytes;
    std::unique_ptr<Receipt> written;
  };
  static Receipt receipt_of(Tag tag, std::span<const std::byte> bytes);
  static bool settle(Pair& pair);

  std::unique_ptr<Transport> inner_;
  std::vector<Pair> pairs_;
};

}  // namespace gradus
