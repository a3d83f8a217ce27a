/// Without a trace, the suggested way is taken.
#include "gradus/ops/size_choice.h"

namespace gradus {

bool (*SizeChoice::choose)(bool suggested) = [](bool suggested) { return suggested; };
bool (*SizeChoice::decide)(bool suggested) = [](bool suggested) { return suggested; };

}  // namespace gradus
