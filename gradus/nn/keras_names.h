/// Keras's other names of layers: each is an alias of the layer that it stands for.
#pragma once
#include "gradus/nn/convolutions.h"
#include "gradus/nn/pools.h"

namespace gradus {

using AvgPool1D = AveragePooling1D;              // short name
using AvgPool2D = AveragePooling2D;              // short name
using AvgPool3D = AveragePooling3D;              // short name
using MaxPool1D = MaxPooling1D;                  // short name
using MaxPool2D = MaxPooling2D;                  // short name
using MaxPool3D = MaxPooling3D;                  // short name
using GlobalAvgPool1D = GlobalAveragePooling1D;  // short name
using GlobalAvgPool2D = GlobalAveragePooling2D;  // short name
using GlobalAvgPool3D = GlobalAveragePooling3D;  // short name
using GlobalMaxPool1D = GlobalMaxPooling1D;      // short name
using GlobalMaxPool2D = GlobalMaxPooling2D;      // short name
using GlobalMaxPool3D = GlobalMaxPooling3D;      // short name
using Convolution1D = Conv1D;                    // long name
using Convolution2D = Conv2D;                    // long name
using Convolution3D = Conv3D;                    // long name
using Convolution1DTranspose = Conv1DTranspose;  // long name
using Convolution2DTranspose = Conv2DTranspose;  // long name
using Convolution3DTranspose = Conv3DTranspose;  // long name
using SeparableConvolution1D = SeparableConv1D;  // long name
using SeparableConvolution2D = SeparableConv2D;  // long name

}  // namespace gradus
