/// The cache on disk: elements of epoch 0 of the source, each made once and then read from a file.
#include <algorithm>
#include <cstring>
#include <mutex>
#include "gradus/base/error.h"
#include "gradus/base/hash.h"
#include "gradus/base/rooms.h"
#include "gradus/data/cache_file.h"
#include "gradus/data/pipeline_changes.h"
#include "gradus/data/stage.h"

namespace gradus {
namespace {

std::uint64_t fingerprint_of(const Stage& stage) {
  std::uint64_t hash = mix(hash_of(std::string_view(stage.name())), stage.identity());
  for (const Spec& spec : stage.specs()) hash = mix(hash, hash_of(spec));
  for (const Stage* source : stage.sources()) hash = mix(hash, fingerprint_of(*source));
  return hash;
}

class DiskStore {
 public:
  DiskStore(const Stage& source, std::filesystem::path file)
      : source_(source), file_(std::move(file)), fingerprint_(fingerprint_of(source)) {
    CacheFile::check(file_, fingerprint_);
  }

  /// No tensors past the end.
  Tensors at(std::int64_t index) {
    require_all({&index, 1});
    return cache_->holds(index) ? cache_->read(index) : Tensors();
  }
  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) {
    require_all(indices);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const Tensors element = cache_->read(indices[i]);
      for (std::size_t field = 0; field < out.size(); ++field) {
        const std::size_t bytes = element[field].bytes();
        if (bytes > 0) std::memcpy(out[field] + i * bytes, element[field].host(), bytes);
      }
    }
  }

 private:
  void require_all(std::span<const std::int64_t> indices) {
    const std::lock_guard lock(guard_);
    const StopScope::Pause to_the_end;
    if (!cache_) {
      const bool counted = source_.is_counted();
      cache_ = CacheFile::open(file_, fingerprint_, source_.specs(),
                               counted ? std::optional(source_.length(0)) : std::nullopt);
    }
    std::vector<std::int64_t> missing;
    for (const std::int64_t index : indices)
      if (!cache_->holds(index)) missing.push_back(index);
    if (missing.empty()) return;
    if (!source_.is_counted()) return read_on(missing.back());
    std::ranges::sort(missing);
    missing.erase(std::ranges::unique(missing).begin(), missing.end());
    if (!pass_) pass_ = source_.open(0);
    if (missing.size() == 1 || have_any_size(source_.specs()))
      for (const std::int64_t index : missing) cache_->append(index, pass_->at(index));
    else append_all(missing);
  }
  /// Reads elements in order.
  void read_on(std::int64_t last) {
    if (cache_->count()) return;
    if (!pass_) pass_ = source_.open(0);
    while (cache_->holds(next_)) ++next_;
    for (; next_ <= last; ++next_) {
      const Tensors element = next_ < source_.length(0) ? pass_->at(next_) : Tensors();
      if (element.empty()) return cache_->finish(next_);
      cache_->append(next_, element);
    }
  }
  /// All that is missing at once: the stages before may make elements in parallel.
  void append_all(const std::vector<std::int64_t>& missing) {
    const std::vector<Spec>& specs = source_.specs();
    Tensors fresh;
    std::vector<std::byte*> out;
    for (Spec spec : specs) {
      spec.shape.insert(0, std::ssize(missing));
      Ref<Buffer> buffer = Buffer::allocate(bytes_of(spec), "cache of a dataset");
      out.push_back(buffer->data<std::byte>());
      fresh.push_back(Tensor::of_buffer(spec, std::move(buffer)));
    }
    pass_->write(missing, out);
    for (std::size_t i = 0; i < missing.size(); ++i) {
      Tensors element;
      for (std::size_t field = 0; field < specs.size(); ++field) {
        const std::int64_t bytes = bytes_of(specs[field]);
        Ref<Buffer> row = Buffer::allocate(bytes, "element of a dataset");
        if (bytes > 0)
          std::memcpy(row->data(), out[field] + static_cast<std::int64_t>(i) * bytes, static_cast<std::size_t>(bytes));
        element.push_back(Tensor::of_buffer(specs[field], std::move(row)));
      }
      cache_->append(missing[i], element);
    }
  }

  const Stage& source_;
  const std::filesystem::path file_;
  const std::uint64_t fingerprint_;
  std::mutex guard_;  // guards the members below
  std::shared_ptr<CacheFile> cache_;
  std::unique_ptr<Pass> pass_;
  std::int64_t next_ = 0;  // the cache holds all before it
};

class DiskPass : public Pass {
 public:
  DiskPass(DiskStore& store, bool varying) : store_(store), varying_(varying) {}
  Tensors at(std::int64_t index) override { return store_.at(index); }
  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) override {
    if (varying_) Pass::write(indices, out);
    else store_.write(indices, out);
  }

 private:
  DiskStore& store_;
  const bool varying_;
};

class DiskCacheStage : public DerivedStage {
 public:
  DiskCacheStage(const StagePointer& source, std::filesystem::path file)
      : DerivedStage(source), store_(*source, std::move(file)) {}
  std::string name() const override { return "cache"; }
  bool repeats_itself() const override { return true; }
  /// Elements that another chain reads are not kept here, nor on the disk.
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges& changes) const override {
    return cached(sources[0], changes);
  }
  std::int64_t length(std::int64_t) const override { return source().length(0); }
  std::optional<RowLayout> layout(std::int64_t) const override { return source().layout(0); }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t) const override {
    return std::make_unique<DiskPass>(store_, have_any_size(specs()));
  }

 private:
  mutable DiskStore store_;
};

}  // namespace

StagePointer disk_cache_stage(StagePointer source, const std::filesystem::path& file) {
  return std::make_shared<DiskCacheStage>(source, file);
}

}  // namespace gradus
