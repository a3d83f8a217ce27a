/// Where the launcher hears of its ranks (gradus/distribute/launcher_reports.h): a socket without a file.
#pragma once
#include <string>
#include <vector>
#include "gradus/distribute/launcher_reports.h"

namespace gradus::command {

class ReportSocket {
 public:
  /// Where no such socket can be made it has no name, and hears nothing.
  ReportSocket();
  ~ReportSocket();
  ReportSocket(const ReportSocket&) = delete;

  /// What ranks are told: Cluster::launcher.
  const std::string& name() const { return name_; }
  /// For poll; -1 if there is none.
  int descriptor() const { return socket_; }
  /// Those that have come. Processes of other users are not heard.
  std::vector<RankReport> read() const;

 private:
  std::string name_;
  int socket_ = -1;
};

}  // namespace gradus::command
