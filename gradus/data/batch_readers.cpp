#include "gradus/data/batch_readers.h"
#include <algorithm>
#include <mutex>
#include <unordered_map>
#include "gradus/base/divide.h"
#include "gradus/base/error.h"
#include "gradus/base/notice.h"
#include "gradus/base/rooms.h"

namespace gradus {
namespace {

/// The buffers that are parts of a batch. A buffer is in it as long as it lives.
class Parts {
 public:
  static Parts& all() {
    static Parts parts;
    return parts;
  }
  void add(const Buffer* buffer, std::shared_ptr<const BatchPart> batch) {
    const std::lock_guard lock(guard_);
    of_buffer_[buffer] = std::move(batch);
  }
  void remove(const Buffer* buffer) {
    std::shared_ptr<const BatchPart> last;  // after the lock
    const std::lock_guard lock(guard_);
    const auto found = of_buffer_.find(buffer);
    if (found == of_buffer_.end()) return;
    last = std::move(found->second);
    of_buffer_.erase(found);
  }
  std::shared_ptr<const BatchPart> find(const Buffer* buffer) {
    const std::lock_guard lock(guard_);
    const auto found = of_buffer_.find(buffer);
    return found == of_buffer_.end() ? nullptr : found->second;
  }

 private:
  std::mutex guard_;
  std::unordered_map<const Buffer*, std::shared_ptr<const BatchPart>> of_buffer_;
};

/// The memory of a part; it ends with the buffer that borrows it.
struct PartMemory {
  Ref<Buffer> rows;
  const Buffer* buffer = nullptr;
  ~PartMemory() { Parts::all().remove(buffer); }
};

constexpr std::int64_t at_its_end = -1;

class SharedReading final : public Reading {
 public:
  SharedReading(std::unique_ptr<Reading> own, std::vector<Spec> specs, std::shared_ptr<const BatchReaders> readers)
      : own_(std::move(own)), readers_(std::move(readers)), specs_(std::move(specs)), place_(own_->position()) {
    for (Spec& spec : specs_)
      if (spec.shape.rank() > 0) spec.shape.set(0, 0);
  }

  bool at_end() override {
    if (is_agreed_) return is_over_;
    while (!agree()) step();  // no rank has rows of that batch any more
    is_agreed_ = true;
    return is_over_;
  }
  const Tensors& element() override {
    require<OutOfRange>(!at_end(), "the pass over this dataset has ended after ", place_.index, " elements");
    return element_;
  }
  void advance() override {
    require<OutOfRange>(!at_end(), "the pass over this dataset has ended after ", place_.index, " elements");
    step();
    is_agreed_ = false;
  }
  Position position() const override { return place_; }

 private:
  void step() {
    if (!has_ended_) own_->advance();
    element_.clear();
    ++place_.index;
  }
  /// False if there is a batch, but the rank with its rows has ended.
  bool agree() {
    take_own();
    const std::vector<std::int64_t> rows = readers_->all_gather(has_ended_ ? at_its_end : rows_of_own());
    const auto first = std::ranges::find_if(rows, [](std::int64_t n) { return n != at_its_end; });
    is_over_ = first == rows.end();
    if (is_over_) return true;
    if (std::ranges::any_of(rows, [&](std::int64_t n) { return n != at_its_end && n != *first; }))
      readers_->announce_common_error();
    BatchPart batch{readers_, *first};
    for (std::size_t rank = 0; rank < rows.size(); ++rank) {
      require(rows[rank] == at_its_end || rows[rank] == *first, "batch ", place_.index, " of the data set has ",
              rows[rank], " rows on ", readers_->name_of(static_cast<int>(rank)), " and ", *first, " on ",
              readers_->name_of(static_cast<int>(first - rows.begin())), ": all ranks read the same data");
      batch.has_ended.push_back(rows[rank] == at_its_end);
    }
    if (std::ranges::count(batch.has_ended, true) == 0) return true;
    if (!has_rows(batch)) return false;
    const auto shared = std::make_shared<const BatchPart>(std::move(batch));
    if (has_ended_) element_ = without_rows();
    for (Tensor& field : element_)
      if (field.shape().rank() > 0) field = as_part(field, shared);
    return true;
  }
  static bool has_rows(const BatchPart& batch) {
    for (std::size_t rank = 0; rank < batch.has_ended.size(); ++rank)
      if (!batch.has_ended[rank] && batch.readers->share_of(static_cast<int>(rank)).rows(batch.rows).count() > 0)
        return true;
    return false;
  }
  void take_own() {
    if (has_ended_) return;
    if (own_->at_end()) {
      has_ended_ = true;
      return;
    }
    element_ = own_->element();
    for (std::size_t field = 0; field < element_.size(); ++field) {
      specs_[field] = element_[field].spec();
      if (specs_[field].shape.rank() > 0) specs_[field].shape.set(0, 0);
    }
  }
  std::int64_t rows_of_own() const {
    for (const Tensor& field : element_)
      if (const auto batch = batch_of_part(field)) return batch->rows;
    return 0;
  }
  Tensors without_rows() {
    if (!is_told_)
      notice(text("gradus: the data set of ", readers_->name_of(readers_->rank()), " has ended after ", place_.index,
                  " batches; it goes on without examples until those of all ranks have\n"));
    is_told_ = true;
    Tensors fields;
    for (const Spec& spec : specs_) {
      require<DataError>(!has_any_size(spec), "the data set of ", readers_->name_of(readers_->rank()),
                         " is empty, and how large its examples are is not known: ", spec);
      fields.push_back(Tensor::of_buffer(spec, Buffer::allocate(bytes_of(spec))));
    }
    return fields;
  }

  const std::unique_ptr<Reading> own_;
  const std::shared_ptr<const BatchReaders> readers_;
  std::vector<Spec> specs_;  // of an element without rows
  Position place_;
  Tensors element_;
  bool is_agreed_ = false, is_over_ = false, has_ended_ = false, is_told_ = false;
};

}  // namespace

std::int64_t first_row_of_shard(std::int64_t i, std::int64_t n, std::int64_t shards) {
  return divide_up(i * n, shards);
}

RowRange BatchShare::rows(std::int64_t n) const {
  return {first_row_of_shard(begin, n, shards), first_row_of_shard(end, n, shards)};
}

Tensor as_part(const Tensor& rows, const std::shared_ptr<const BatchPart>& batch) {
  auto memory = std::make_shared<PartMemory>(PartMemory{rows.host_buffer()});
  void* const data = const_cast<void*>(memory->rows->host());
  PartMemory& kept = *memory;
  Ref<Buffer> buffer = Buffer::borrow(data, kept.rows->bytes(), std::move(memory));
  kept.buffer = buffer.get();
  Parts::all().add(buffer.get(), batch);
  return Tensor::of_buffer({rows.dtype(), rows.shape()}, std::move(buffer));
}

std::shared_ptr<const BatchPart> batch_of_part(const Tensor& x) { return Parts::all().find(x.host_buffer().get()); }

std::unique_ptr<Reading> shared_reading(std::unique_ptr<Reading> own, std::vector<Spec> specs,
                                        std::shared_ptr<const BatchReaders> readers) {
  return std::make_unique<SharedReading>(std::move(own), std::move(specs), std::move(readers));
}

}  // namespace gradus
