/// DividedValue: a value whose parts lie on their ranks, such as an optimizer's slot. It stands in a Variable as a
/// whole one does, under the spec of the whole.
#pragma once
#include <mutex>
#include "gradus/base/rooms.h"
#include "gradus/tensor/buffer.h"
#include "gradus/tensor/cuts.h"

namespace gradus {

class DividedValue final : public DeviceMemory {
 public:
  DividedValue(Ref<Buffer> part, Cuts cuts) : part_(std::move(part)), cuts_(std::move(cuts)) {}

  void wait() const override {}
  /// InvalidArgument: all ranks have to gather it together before a read.
  const void* host() override;
  /// The elements of this process's rank.
  const Ref<Buffer>& part() const { return part_; }
  const Cuts& cuts() const { return cuts_; }

  /// The divided value in `buffer`, else null.
  static const DividedValue* of(const Buffer& buffer);
  /// A buffer of a value of `bytes` bytes; this process has `part` of it.
  static Ref<Buffer> buffer_of(Ref<Buffer> part, const Cuts& cuts, std::int64_t bytes);

 private:
  const Ref<Buffer> part_;
  const Cuts cuts_;
};

/// A value whose elements are all the same, without memory until it is read: the first state that ranks will divide.
class RepeatedValue final : public DeviceMemory {
 public:
  RepeatedValue(Ref<Buffer> element, std::int64_t count) : element_(std::move(element)), count_(count) {}

  void wait() const override {}
  const void* host() override;
  /// `count` elements of it.
  Ref<Buffer> part(std::int64_t count) const;

  static const RepeatedValue* of(const Buffer& buffer);
  /// A buffer of `count` elements with the bytes of `element`, a buffer of one.
  static Ref<Buffer> buffer_of(Ref<Buffer> element, std::int64_t count);

 private:
  const Ref<Buffer> element_;
  const std::int64_t count_;
  std::mutex guard_;
  Ref<Buffer> whole_;
};

/// Ranks compare values of `bytes` bytes by this: 0 for a divided value, since ranks have different parts; the hash of
/// one element for a repeated one.
std::uint64_t hash_among_ranks(const Buffer& value, std::int64_t bytes);

}  // namespace gradus
