/// What ranks tell their launcher (gradus/base/launcher_note.h), in a file of memory that ends with it.
#pragma once
#include <string>

namespace gradus::command {

class RankNotes {
 public:
  RankNotes();
  ~RankNotes();
  RankNotes(const RankNotes&) = delete;

  /// Where processes of this user find the file; empty if there is none.
  std::string path() const;
  /// True if ranks have trained, and none has asked which of them it is.
  bool is_of_strangers() const;

 private:
  int descriptor_;
};

}  // namespace gradus::command
