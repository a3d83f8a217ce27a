/// Zips: the fields of several datasets side by side, as long as the shortest.
#include <algorithm>
#include "gradus/data/stage.h"

namespace gradus {
namespace {

class ZipPass : public Pass {
 public:
  struct Part {
    std::unique_ptr<Pass> pass;
    std::int64_t length;
    std::vector<Spec> specs;
  };
  explicit ZipPass(std::vector<Part> parts) : parts_(std::move(parts)) {}
  Tensors at(std::int64_t index) override {
    Tensors element;
    for (const Part& part : parts_) {
      if (index >= part.length) return {};
      Tensors fields = part.pass->at(index);
      if (fields.empty()) return {};
      std::ranges::move(fields, std::back_inserter(element));
    }
    return element;
  }
  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) override {
    for (const Part& part : parts_) {
      part.pass->write(indices, out.first(part.specs.size()));
      out = out.subspan(part.specs.size());
    }
  }
  Tensors stack(const std::vector<Spec>&, std::span<const std::int64_t> indices) override {
    Tensors fields;
    for (const Part& part : parts_)
      std::ranges::move(part.pass->stack(part.specs, indices), std::back_inserter(fields));
    return fields;
  }

  /// Where all parts choose the same rows.
  std::optional<ChosenRows> chosen(std::span<const std::int64_t> indices) override {
    ChosenRows all;
    for (const Part& part : parts_) {
      std::optional<ChosenRows> rows = part.pass->chosen(indices);
      const bool is_first = all.arrays.empty();
      if (!rows || (!is_first && (rows->rows != all.rows || rows->is_batch != all.is_batch))) return {};
      std::ranges::move(rows->arrays, std::back_inserter(all.arrays));
      all.rows = std::move(rows->rows);
      all.is_batch = rows->is_batch;
    }
    return all;
  }

  /// Where all parts have equally many.
  std::optional<std::int64_t> rows_of(std::int64_t index) override {
    std::optional<std::int64_t> all;
    for (const Part& part : parts_) {
      const std::optional<std::int64_t> rows = index < part.length ? part.pass->rows_of(index) : std::nullopt;
      if (!rows || (all && *rows != *all)) return {};
      all = rows;
    }
    return all;
  }
  std::optional<Tensors> rows_at(std::int64_t index, RowRange rows) override {
    Tensors element;
    for (const Part& part : parts_) {
      std::optional<Tensors> fields = part.pass->rows_at(index, rows);
      if (!fields) return {};
      std::ranges::move(*fields, std::back_inserter(element));
    }
    return element;
  }

 private:
  std::vector<Part> parts_;
};

class ZipStage : public JoiningStage {
 public:
  explicit ZipStage(const std::vector<StagePointer>& parts) : JoiningStage(parts, specs_of(parts)) {}
  std::string name() const override { return "zip"; }
  std::int64_t length(std::int64_t epoch) const override {
    std::int64_t shortest = endless_length;
    for (const StagePointer& part : parts()) shortest = std::min(shortest, part->length(epoch));
    return shortest;
  }
  bool is_endless() const override {
    return std::ranges::all_of(parts(), [](const StagePointer& part) { return part->is_endless(); });
  }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    return std::make_shared<ZipStage>(sources);
  }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    std::vector<ZipPass::Part> passes;
    for (const StagePointer& part : parts()) passes.push_back({part->open(epoch), part->length(epoch), part->specs()});
    return std::make_unique<ZipPass>(std::move(passes));
  }

 private:
  static std::vector<Spec> specs_of(const std::vector<StagePointer>& parts) {
    std::vector<Spec> specs;
    for (const StagePointer& part : parts) specs.insert(specs.end(), part->specs().begin(), part->specs().end());
    return specs;
  }
};

}  // namespace

StagePointer zip_stage(std::vector<StagePointer> sources) { return std::make_shared<ZipStage>(sources); }

}  // namespace gradus
