/// SavedText: state that is no tensor and is kept in the files of a model, as text: a vocabulary or a tokenizer.
#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace gradus {

namespace detail::inline rooms {

/// The base of layers of text. A field of a Model<Net> that derives from it is saved and loaded with the model.
class SavedText {
 public:
  virtual ~SavedText() = default;

  // For the rooms of the library.
  /// Its name in files, behind that of the field: "vocabulary.json".
  virtual std::string_view saved_as() const = 0;
  /// The text that a file keeps; empty: there is nothing to keep yet.
  virtual std::string saved_text() const = 0;
  /// True if a file of this model may hold no text of it.
  virtual bool may_be_absent() const { return false; }
  /// A text that was read and checked.
  struct Loading {
    std::string unlike;          // how the options in the file differ; empty: take() may be called
    std::function<void()> take;  // takes the state over; the object still lives
  };
  /// Reads saved_text(); nothing changes yet. DataError, opened by `source`, for a text that is damaged.
  virtual Loading loading(std::string_view saved, const std::string& source) = 0;

 protected:
  SavedText() = default;
  SavedText(const SavedText&) = default;
  SavedText(SavedText&&) = default;
  SavedText& operator=(const SavedText&) = default;
  SavedText& operator=(SavedText&&) = default;
};

}  // namespace detail::inline rooms

}  // namespace gradus
