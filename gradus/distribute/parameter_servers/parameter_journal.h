/// ParameterJournal: the record of a parameter server's input, on disk, so that a killed server is restored as it was.
/// Events are appended to a log before they are acknowledged. Now and then a snapshot takes the place of the logs
/// before it. Files are `snapshot-N`, everything before `log-N`, and `log-N`, `log-N+1`, ...; each is records of
/// length, checksum and bytes.
///
/// A process that is killed loses nothing. A machine that loses its power may lose the events since the last snapshot.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

namespace gradus {

class ParameterJournal {
 public:
  using Take = std::function<void(std::string_view event)>;

  /// Makes the directory if need be. Unavailable if it cannot be used.
  explicit ParameterJournal(std::filesystem::path directory);
  ~ParameterJournal();
  ParameterJournal(const ParameterJournal&) = delete;

  /// All events of the newest snapshot and of the logs after it, in order; then a new log begins. DataError for a
  /// damaged snapshot; the last event of a log may be cut off, since it was never acknowledged.
  void recover(const Take& take);
  /// Returns when the system has it. ResourceExhausted on a full disk.
  void append(std::string_view event);
  /// Events from now on are after the next snapshot.
  void turn();
  /// Writes all events before the last turn(): `write` gives them. Older files go.
  void write_snapshot(const std::function<void(const Take& add)>& write);
  /// Nothing has happened: all files go.
  void reset();

 private:
  std::filesystem::path file(std::string_view kind, std::uint64_t number) const;
  void open_log();
  void remove_before(std::uint64_t number);
  const std::filesystem::path directory_;
  std::uint64_t number_ = 0;  // of the log that is written
  int descriptor_ = -1;
};

}  // namespace gradus
