// Shows: strings in a data set, a vocabulary taken from them, and a classifier: TextVectorization in a map on the host,
// then Embedding and `fit`. The vocabulary is a field of the model, so it is in the model's file. Prints: the size of
// the vocabulary and the accuracy on sentences that were not seen (1).
#include <gradus/gradus.h>
#include <filesystem>
using namespace gradus;

/// Sentences about weather (0) and about cooking (1), put together at random from a few words.
std::pair<Strings, Tensor> sentences(int count, std::uint64_t seed) {
  const std::vector<std::string> starts{"Today", "Yesterday,", "They say", "It seems", "In the evening"};
  const std::vector<std::vector<std::string>> topics{{"the storm", "rain", "heavy snow", "a cold wind", "fog"},
                                                     {"the soup", "fresh bread", "an onion", "the sauce", "butter"}};
  const std::vector<std::vector<std::string>> verbs{{"came over the hills", "fell all night", "covered the roads"},
                                                    {"went into the pan", "smelled of garlic", "baked for an hour"}};
  const auto dice = random::integers({count, 4}, {.high = 30, .seed = seed}).to_vector<std::int32_t>();
  std::vector<std::string> texts;
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i + 3 < dice.size(); i += 4) {
    const auto any_of = [&](const std::vector<std::string>& words, std::size_t place) {
      return words[static_cast<std::size_t>(dice[i + place]) % words.size()];
    };
    const std::size_t topic = static_cast<std::size_t>(dice[i]) % 2;
    texts.push_back(any_of(starts, 1) + ' ' + any_of(topics[topic], 2) + ' ' + any_of(verbs[topic], 3) + '.');
    labels.push_back(static_cast<std::int32_t>(topic));
  }
  return {texts, constant(labels)};
}

struct Topics {
  TextVectorization vectorize{{.max_tokens = 100, .output_sequence_length = 8}};  // 0: padding, 1: unknown
  Sequential classify{Embedding(100, 16, {.mask_zero = true}), GlobalAveragePooling1D(), Dense(2)};
  Tensor operator()(Tensor ids) const { return classify(ids); }
};

int main() {
  set_seed(0);
  const auto [texts, labels] = sentences(400, 1);
  const TextDataset<1> all = data::from_tensor_slices(texts, labels);

  Model<Topics> model;
  TextVectorization& vectorize = model->vectorize;
  vectorize.adapt(all);
  print("vocabulary", vectorize.vocabulary_size(), "ids of a sentence", vectorize(texts[0]));
  // Strings stay on the host: the map makes ids of them.
  const auto ids = [&](const Strings& text, Tensor label) { return std::pair{vectorize(text), label}; };
  const Dataset<2> training = all.shuffle().batch(32).map(ids).prefetch();

  Adam optimizer({.learning_rate = 0.02});
  const SparseCategoricalCrossentropy loss(from_logits);
  fit(model, optimizer, loss, training, {.epochs = 5, .verbose = false});

  const auto [new_texts, new_labels] = sentences(100, 2);
  const Dataset<2> testing = data::from_tensor_slices(new_texts, new_labels).batch(50).map(ids);
  const Evaluation result = evaluate(model, loss, testing, {.metrics = {SparseCategoricalAccuracy()}});
  print("accuracy", result["sparse_categorical_accuracy"]);
  check(result["sparse_categorical_accuracy"] > 0.99, "the topics are told apart");

  // As in another program: the file has weights and vocabulary.
  const auto file = std::filesystem::temp_directory_path() / "gradus_text_classification.safetensors";
  save_safetensors(file, model);
  Model<Topics> read;
  read.build({i64, {any_size, 8}});
  load_safetensors(file, read);
  const Tensor scores = read(read->vectorize(Strings{"Butter and garlic went into the pan!"}), inference);
  check(argmax(scores, 1).item() == 1, "a sentence about cooking");
  std::filesystem::remove(file);
}
