/// Steps become an object file: the layout of their state, the tables of each step, and what they have in common.
#include <algorithm>
#include <cstring>
#include <deque>
#include "gradus/backend/cpu/kernels/kernel_names.h"
#include "gradus/backend/cpu/object/c_header.h"
#include "gradus/backend/cpu/object/link.h"
#include "gradus/backend/cpu/object/step_maker.h"
#include "gradus/backend/cpu/object/targets.h"
#include "gradus/backend/cpu/tiles/used_tiles.h"
#include "gradus/base/thread_pool.h"

namespace gradus {
namespace object {
namespace {

class ObjectMaker {
 public:
  explicit ObjectMaker(const ObjectSteps& all)
      : all_(all), title_((all.steps.size() == 1 ? "export_object of " : "export_objects of ") + all.name) {}

  ObjectText make() {
    // Never with AMX, for which a process has to ask.
    const cpu_backend::Processor& processor = processor_for(all_.target, all_.instruction_set);
    const cpu_backend::TargetScope target(&processor);  // sizes of scratch are its, too
    const ThreadPool::AtMost one(1);
    lay_out();
    cpu_backend::ObjectModule module{.name = all_.name, .steps = {}, .init = nullptr, .named = {}, .symbol_of = {}};
    for (const ObjectStep& step : all_.steps) {
      StepMaker& maker = makers_.emplace_back(step, places_, parts_);
      const bool returns = returns_of(step) != cpu_backend::Returns::nothing;
      module.steps.push_back({.name = step.name,
                              .pointers = static_cast<int>(step.arguments.size() + step.results.size()) - returns,
                              .returns = returns_of(step),
                              .step = maker.make()});
      workspace_bytes_ = std::max(workspace_bytes_, maker.workspace_bytes());
    }
    return finish(module, processor);
  }

 private:
  void lay_out() {
    Space state;
    for (const ObjectField& field : all_.fields) places_.fields.push_back(state.take(bytes_of(field.spec)));
    if (std::ranges::any_of(all_.steps, &ObjectStep::draws)) places_.random_state = state.take(sizeof(std::uint64_t));
    places_.failure = state.take(3 * sizeof(std::int64_t));
    places_.workspace = state.end;
  }

  ObjectText finish(cpu_backend::ObjectModule& module, const cpu_backend::Processor& processor) {
    const std::int64_t bytes = places_.workspace + workspace_bytes_;
    if (!has_weights_file()) module.init = init_image(bytes);
    module.named = {{"gradus_object_facts", facts_image(processor)}, {processor.tile_table, tiles_image(processor)}};
    module.symbol_of = [this](KernelFunction run) {
      const auto found = parts_.names.find(run);
      return found != parts_.names.end() ? found->second : symbol_of(run);
    };
    std::vector<std::string> objects = parts_.objects;
    objects.push_back(object_of_module(module, processor.isa));
    std::vector<std::string> functions{all_.name + "_supported"};
    for (const ObjectStep& step : all_.steps) functions.push_back(step.name);
    if (!has_weights_file()) functions.push_back(all_.name + "_init");
    return {linked(objects, functions, processor.isa, title_),
            to_c({.all = all_,
                  .places = places_,
                  .workspace_bytes = workspace_bytes_,
                  .bytes = bytes,
                  .failures = parts_.failures,
                  .instruction_set = processor.name}),
            has_weights_file() ? weights() : std::string()};
  }
  bool has_weights_file() const { return !all_.weights_file.empty(); }
  /// The state as NAME_init would write it, up to the workspace.
  std::string weights() const {
    std::string made(at(places_.workspace), 0);
    for (std::size_t k = 0; k < all_.fields.size(); ++k)
      if (const auto size = at(bytes_of(all_.fields[k].spec)))
        std::memcpy(made.data() + places_.fields[k], all_.fields[k].now->host(), size);
    if (places_.random_state >= 0)
      std::memcpy(made.data() + places_.random_state, &all_.random_state, sizeof all_.random_state);
    return made;
  }
  Image init_image(std::int64_t bytes) {
    Init init{.bytes = bytes};
    TableImage<CopyEntry> values;
    for (std::size_t k = 0; k < all_.fields.size(); ++k) {
      const std::int64_t size = bytes_of(all_.fields[k].spec);
      add_copy_of(values, {Address::state, places_.fields[k]}, parts_.bytes_of(all_.fields[k].now, size), size);
    }
    if (places_.random_state >= 0)
      add_copy_of(values, {Address::state, places_.random_state},
                  std::make_shared<const DataImage>(DataImage::of_words(&all_.random_state, 1)), sizeof(std::uint64_t));
    DataImage image = DataImage::of_bytes(&init, sizeof init);
    values.set(image, init, &Init::values);
    return std::make_shared<const DataImage>(std::move(image));
  }
  /// The table of tiles with the entries that the steps call. They are known by name alone: the processor may be of
  /// another architecture, whose tiles are not part of this library.
  Image tiles_image(const cpu_backend::Processor& processor) {
    using cpu_backend::tile_entries;
    static const char places[tile_entries] = {};  // one address for each
    DataImage image;
    image.bytes.resize(tile_entries * sizeof(void*));
    for (std::size_t i = 0; i < tile_entries; ++i) {
      if (!parts_.tiles.test(i)) continue;
      const auto key = reinterpret_cast<KernelFunction>(reinterpret_cast<std::uintptr_t>(&places[i]));
      parts_.names.emplace(key, text(processor.tile_table, "_", i));
      image.pointers.push_back({.offset = i * sizeof(void*), .code = key});
    }
    return std::make_shared<const DataImage>(std::move(image));
  }
  static Image facts_image(const cpu_backend::Processor& processor) {
    const bool has_pairs = processor.has_pair_tiles && cpu_backend::has_pair_products();
    const Facts facts{
        static_cast<std::int64_t>(processor.isa), has_pairs, has_pairs && cpu_backend::prefers_pair_products(),
        processor.has_near_panels && cpu_backend::prefers_near_panels(), cpu_backend::second_level_cache()};
    return std::make_shared<const DataImage>(DataImage::of_bytes(&facts, sizeof facts));
  }

  const ObjectSteps& all_;
  const std::string title_;
  StatePlaces places_;
  ObjectParts parts_;
  std::deque<StepMaker> makers_;
  std::int64_t workspace_bytes_ = 0;  // of the step that needs most
};

}  // namespace
}  // namespace object

ObjectText make_object(const ObjectSteps& all) { return object::ObjectMaker(all).make(); }

}  // namespace gradus
