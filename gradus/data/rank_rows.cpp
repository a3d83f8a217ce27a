/// The rows of one rank: of each batch those of its shards are made, and where that cannot be, taken from the whole.
#include <algorithm>
#include <atomic>
#include "gradus/base/error.h"
#include "gradus/base/notice.h"
#include "gradus/base/rooms.h"
#include "gradus/data/batch_readers.h"
#include "gradus/data/fingerprint.h"

namespace gradus {
namespace {

/// These rows of a field, where they lie.
Tensor rows_of_field(const Tensor& whole, RowRange rows) {
  if (whole.shape().rank() == 0) return whole;
  Spec spec{whole.dtype(), whole.shape()};
  spec.shape.set(0, rows.count());
  const Ref<Buffer> buffer = whole.host_buffer();
  const std::int64_t row = whole.shape()[0] > 0 ? buffer->bytes() / whole.shape()[0] : 0;
  auto* const data = const_cast<std::byte*>(static_cast<const std::byte*>(buffer->host()));
  return Tensor::of_buffer(
      spec, Buffer::borrow(data + rows.begin * row, rows.count() * row, std::make_shared<Ref<Buffer>>(buffer)));
}

/// How many rows all fields have that have any; -1: they have not equally many, or none has.
std::int64_t common_rows(const Tensors& element) {
  std::int64_t rows = -1;
  for (const Tensor& field : element) {
    if (field.shape().rank() == 0) continue;
    if (rows >= 0 && field.shape()[0] != rows) return -1;
    rows = field.shape()[0];
  }
  return rows;
}

/// The common part of all passes of a stage.
struct RankRows {
  std::shared_ptr<const BatchReaders> readers;
  BatchShare share;
  std::vector<Spec> specs;  // with 0 rows
  std::string source;
  std::atomic<bool> is_told = false;

  /// Says once that whole batches are read.
  void tell() {
    if (readers->rank() != 0 || is_told.exchange(true)) return;
    notice(text("gradus: every rank reads whole batches of this data set, and uses its own rows of them: `", source,
                "` gives no single rows of a batch\n"));
  }
};

class RankRowsPass : public Pass {
 public:
  RankRowsPass(std::unique_ptr<Pass> source, RankRows& rank) : source_(std::move(source)), rank_(rank) {}

  Tensors at(std::int64_t index) override {
    if (const std::optional<std::int64_t> all = source_->rows_of(index))
      if (std::optional<Tensors> own = own_rows(index, *all)) return as_parts(std::move(*own), {rank_.readers, *all});
    const Tensors whole = source_->at(index);
    if (whole.empty()) return {};
    const bool is_of_parts = std::ranges::any_of(whole, [](const Tensor& x) { return batch_of_part(x) != nullptr; });
    if (is_of_parts) rank_.readers->announce_common_error();
    require(!is_of_parts, "a data set that is distributed twice; distribute what is made of others");
    const std::int64_t all = common_rows(whole);
    if (all < 0) return whole;  // the strategy says what is wrong with it, or there are no rows
    rank_.tell();
    Tensors own;
    for (const Tensor& field : whole) own.push_back(rows_of_field(field, rank_.share.rows(all)));
    // The rows lie in the memory of the whole batch, which therefore stays without a copy.
    const std::uint64_t fingerprint = fingerprint_of_batch(whole, index);
    return as_parts(std::move(own), {rank_.readers, all, {}, whole, fingerprint});
  }

 private:
  /// Without reading the others.
  std::optional<Tensors> own_rows(std::int64_t index, std::int64_t all) {
    const RowRange rows = rank_.share.rows(all);
    if (rows.count() > 0) return source_->rows_at(index, rows);
    if (have_any_size(rank_.specs)) return {};
    Tensors none;
    for (const Spec& spec : rank_.specs) {
      if (spec.shape.rank() == 0) return {};
      none.push_back(Tensor::of_buffer(spec, Buffer::allocate(bytes_of(spec))));
    }
    return none;
  }
  static Tensors as_parts(Tensors own, BatchPart part) {
    const auto batch = std::make_shared<const BatchPart>(std::move(part));
    for (Tensor& field : own)
      if (field.shape().rank() > 0) field = as_part(field, batch);
    return own;
  }

  const std::unique_ptr<Pass> source_;
  RankRows& rank_;
};

class RankRowsStage : public DerivedStage {
 public:
  RankRowsStage(const StagePointer& source, std::shared_ptr<const BatchReaders> readers)
      : DerivedStage(source, with_rows(source->specs(), any_size)) {
    rank_.share = readers->share_of(readers->rank());
    rank_.readers = std::move(readers);
    rank_.specs = with_rows(source->specs(), 0);
    rank_.source = source->name();
  }
  std::string name() const override { return text("rows of rank ", rank_.readers->rank()); }
  std::uint64_t fingerprint() const override { return 0; }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<RankRowsPass>(source().open(epoch), rank_);
  }

 private:
  static std::vector<Spec> with_rows(std::vector<Spec> specs, std::int64_t rows) {
    for (Spec& spec : specs)
      if (spec.shape.rank() > 0) spec.shape.set(0, rows);
    return specs;
  }
  mutable RankRows rank_;
};

}  // namespace

StagePointer rank_rows_stage(StagePointer source, std::shared_ptr<const BatchReaders> readers) {
  return std::make_shared<RankRowsStage>(source, std::move(readers));
}

}  // namespace gradus
