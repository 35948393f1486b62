"""ResNet v1.5 and VGG-16 in plain torch: where there is no torchvision, as beside torch's newest CPU build."""
from torch import nn


class Bottleneck(nn.Module):
    def __init__(self, n, width, stride):
        super().__init__()
        k = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(n, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, k, 1, bias=False), nn.BatchNorm2d(k)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or n != k:
            self.downsample = nn.Sequential(nn.Conv2d(n, k, 1, stride, bias=False), nn.BatchNorm2d(k))

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + shortcut)


def resnet(depths):
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    n = 64
    for stage, depth in enumerate(depths):
        width = 64 << stage
        for i in range(depth):
            layers.append(Bottleneck(n, width, 2 if i == 0 and stage > 0 else 1))
            n = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n, 1000))


def vgg16():
    layers, n = [], 3
    for width, depth in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(depth):
            layers += [nn.Conv2d(n, width, 3, padding=1), nn.ReLU(inplace=True)]
            n = width
        layers.append(nn.MaxPool2d(2))
    head = [nn.Flatten(), nn.Linear(512 * 49, 4096), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, 4096),
            nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, 1000)]
    return nn.Sequential(*layers, *head)


NETWORKS = {"resnet50": lambda: resnet((3, 4, 6, 3)), "resnet152": lambda: resnet((3, 8, 36, 3)), "vgg16": vgg16}
