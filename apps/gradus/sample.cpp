/// `gradus sample`.
#include <iostream>
#include "apps/gradus/commands.h"
#include "apps/gradus/model.h"
#include "apps/gradus/path_kinds.h"
#include "apps/gradus/text.h"

namespace gradus::command {

int sample(const SampleArguments& arguments) {
  require_run("sample", arguments.run);
  const TrainConfig config = read_config(arguments.run / "config.toml");
  require<ConfigError>(config.data.kind == "text", arguments.run.string(), ": this run is not of a text; its data are ",
                       config.data.kind);
  if (const std::int64_t threads = arguments.threads.value_or(config.threads))
    set_num_threads(static_cast<int>(threads));
  const Vocabulary vocabulary = Vocabulary::read(arguments.run / "vocabulary.json");
  Sequential model = make_model(config, vocabulary.size());
  model.build({i32, {any_size, config.data.context}});
  load_safetensors(arguments.run / "weights.safetensors", model);
  // Without a prompt the text begins after its lowest character, which is the end of a line where there is one.
  const std::vector<std::int32_t> begin =
      arguments.prompt.empty() ? std::vector<std::int32_t>{0} : vocabulary.encode(arguments.prompt, "the prompt");
  std::cout << arguments.prompt << std::flush;
  sample(model, begin,
         {.characters = arguments.characters,
          .temperature = arguments.temperature,
          .seed = static_cast<std::uint64_t>(arguments.seed),
          .context = config.data.context},
         [&](std::int64_t number) { std::cout << vocabulary[number] << std::flush; });
  std::cout << '\n';
  return ok;
}

}  // namespace gradus::command
